#include "replay/registry.h"
namespace fulcrum::replay {
std::vector<KernelEntry> moe_entries() { return {}; }
}  // namespace fulcrum::replay
