// A program outside the project: prices reading 1792 GB at 1792 GB/s.
#include <cstdio>

#include "model/errors.h"
#include "model/units.h"

int main() {
  using namespace fulcrum;
  const Seconds time = 1792.0_GB / 1792.0_GBps;
  const fulcrum::InputError error(
      fulcrum::InputProblem{.file = "a.json", .pointer = "", .message = "m", .allowed = ""});
  if (time.value() != 1.0 || error.problems().size() != 1) {
    std::puts("the installed library disagrees with its headers");
    return 1;
  }
  return 0;
}
