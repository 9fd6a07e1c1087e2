// Where each kernel of a step stands under the device's roofline.
#pragma once

#include <string>
#include <vector>

#include "model/deployment.h"
#include "model/tally.h"

namespace fulcrum {

/// One launch of an op. The bytes are the least that must move (F6-F9), so the intensity is the
/// highest the op can have.
struct KernelRoofline {
  std::string op;
  OpFamily family = OpFamily::kElementwise;
  std::string kernel;
  double count = 0.0;                 ///< launches in the step
  double seconds = 0.0;               ///< of one launch, as priced
  double dram_bytes = 0.0;            ///< of one launch
  double flop = 0.0;                  ///< of one launch
  double flop_per_second = 0.0;       ///< flop / seconds
  double flop_per_byte = 0.0;         ///< flop / dram_bytes
  double peak_flop_per_second = 0.0;  ///< dense, of the unit that does the work
};

struct StepRoofline {
  double dram_bandwidth_bytes_per_second = 0.0;  ///< datasheet peak
  std::vector<KernelRoofline> kernels;           ///< those that move bytes and do FLOP
};

/// The decode step at `concurrency`; no kernels where the deployment does not fit.
StepRoofline step_roofline(const Deployment& deployment, double concurrency);

}  // namespace fulcrum
