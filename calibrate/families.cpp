// The one table of kernel families.
#include "calibrate/family.h"

namespace fulcrum::calibrate {

std::span<const Family* const> families() { return {}; }

const Family* find_family(const SeriesKey& key) {
  for (const Family* family : families()) {
    if (family->explains(key)) return family;
  }
  return nullptr;
}

}  // namespace fulcrum::calibrate
