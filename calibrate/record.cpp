#include "calibrate/record.h"

namespace fulcrum::calibrate {

std::string to_string(const SeriesKey& key) {
  return key.device + "/" + key.engine + "/" + key.engine_version + "/" + key.table + "/" +
         key.op_name + "/" + key.kernel_source + "/" + key.dtype;
}

}  // namespace fulcrum::calibrate
