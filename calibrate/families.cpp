// The one table of kernel families.
#include <array>

#include "calibrate/families/gemm.h"
#include "calibrate/family.h"

namespace fulcrum::calibrate {

std::span<const Family* const> families() {
  static const std::array kFamilies{&gemm_family()};
  return kFamilies;
}

const Family* find_family(const SeriesKey& key) {
  for (const Family* family : families()) {
    if (family->explains(key)) return family;
  }
  return nullptr;
}

}  // namespace fulcrum::calibrate
