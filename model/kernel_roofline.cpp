#include "model/kernel_roofline.h"

#include <algorithm>

#include "model/memory.h"
#include "model/price.h"

namespace fulcrum {

StepRoofline step_roofline(const Deployment& deployment, double concurrency) {
  StepRoofline out;
  const StepPricer pricer(deployment);
  out.dram_bandwidth_bytes_per_second = pricer.device().dram_bandwidth_bytes_per_second;
  const Workload& work = deployment.workload;
  StepState state;
  state.context = work.input_tokens + work.output_tokens / 2.0;
  const double per_replica = concurrency / std::min(deployment.replicas(), concurrency);
  state.requests = effective_batch(deployment, per_replica, state.context).requests;
  if (state.requests < 1.0) return out;
  state.tokens_per_request = 1.0 + deployment.speculation.draft_tokens;
  state.logits_rows = state.tokens();
  StepPrice price;
  pricer.price(state, price);
  for (std::size_t i = 0; i < price.ops.size(); ++i) {
    const StepOp& op = pricer.graph().ops[i];
    const Tally work_done = tally(launch_at(pricer.graph(), op, state));
    KernelRoofline kernel;
    kernel.op = (op.draft ? "draft." : "") + std::string(name_of(op.id));
    kernel.family = op.family;
    kernel.kernel = pricer.binding(op).kernel;
    kernel.count = op.count;
    kernel.dram_bytes = work_done.dram().value();
    kernel.flop = work_done.flop.value();
    if (op.count == 0.0 || price.ops[i].busy_seconds <= 0.0) continue;
    if (kernel.dram_bytes <= 0.0 || kernel.flop <= 0.0) continue;
    kernel.seconds = price.ops[i].busy_seconds / op.count;
    kernel.flop_per_second = kernel.flop / kernel.seconds;
    kernel.flop_per_byte = kernel.flop / kernel.dram_bytes;
    kernel.peak_flop_per_second = pricer.device().peak(work_done.unit);
    out.kernels.push_back(std::move(kernel));
  }
  return out;
}

}  // namespace fulcrum
