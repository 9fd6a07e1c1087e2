// The one table of kernel families.
#include <array>

#include "calibrate/families/attention.h"
#include "calibrate/families/collective.h"
#include "calibrate/families/collective_path.h"
#include "calibrate/families/gemm.h"
#include "calibrate/families/indexer.h"
#include "calibrate/families/mhc.h"
#include "calibrate/families/moe.h"
#include "calibrate/family.h"

namespace fulcrum::calibrate {

std::span<const Family* const> families() {
  static const std::array kFamilies{&gemm_family(),
                                    &moe_family(),
                                    &fallback_attention_family(),
                                    &split_k_attention_family(),
                                    &indexer_family(),
                                    &mhc_pre_family(),
                                    &mhc_post_family(),
                                    &collective_family(),
                                    &collective_path_family()};
  return kFamilies;
}

const Family* find_family(const SeriesKey& key) {
  for (const Family* family : families()) {
    if (family->explains(key)) return family;
  }
  return nullptr;
}

}  // namespace fulcrum::calibrate
