// One plan item on this process's GPU. Runs in a child process: an illegal access poisons the whole
// context.
#pragma once

#include "replay/io/record.h"
#include "replay/plan.h"

namespace fulcrum::replay {

struct WorkerOptions {
  StoppingRule stopping;
  std::uint64_t seed = 1;
};

// Describes device 0. Throws std::runtime_error (no device, no driver) with what CUDA said.
Session describe_device();

// Never throws: errors become a failed entry. `context_lost` is set when this process can do no
// more.
EntryResult run_item(const PlanItem& item, const WorkerOptions& options, const Session& session,
                     const Nvml& nvml, bool& context_lost);

std::string pci_bus_id();

}  // namespace fulcrum::replay
