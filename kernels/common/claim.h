// What a kernel says it must do at least: the denominator of every achieved rate.
#pragma once

namespace fulcrum::kernels {

// `bytes`: device memory traffic a launch cannot avoid with cold caches (each input byte that is
// used read once per launch unless the kernel's own definition re-reads it, each output written
// once). `flop`: arithmetic of the mathematical operation, multiply and add counted separately.
struct Claim {
  double bytes = 0;
  double flop = 0;
};

}  // namespace fulcrum::kernels
