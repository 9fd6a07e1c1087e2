#include "replay/registry.h"

#include <algorithm>

namespace fulcrum::replay {

const std::vector<KernelEntry>& registry() {
  static const std::vector<KernelEntry> table = [] {
    std::vector<KernelEntry> all;
    for (auto part : {selftest_entries(), stream_entries(), gemm_entries(), moe_entries(),
                      attention_entries(), indexer_entries(), compressor_entries(), mhc_entries(),
                      elementwise_entries(), rotary_entries(), router_entries(), head_entries()}) {
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }();
  return table;
}

const KernelEntry* find_kernel(const std::string& name) {
  const auto& table = registry();
  const auto found =
      std::ranges::find_if(table, [&](const KernelEntry& e) { return e.name == name; });
  return found == table.end() ? nullptr : &*found;
}

}  // namespace fulcrum::replay
