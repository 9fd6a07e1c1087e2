// libFuzzer target of the parsers of `fulcrum import`; FULCRUM_FUZZ_PARSER chooses one.
//   cmake -S . -B build/fuzz -DCMAKE_CXX_COMPILER=clang++ -DFULCRUM_FUZZ=ON
//   -DFULCRUM_ENABLE_CUDA=OFF cmake --build build/fuzz --target import_fuzzer
//   FULCRUM_FUZZ_PARSER=torch_trace build/fuzz/tests/fuzz/import_fuzzer -runs=1000000 CORPUS_FOLDER
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "model/errors.h"
#include "tests/fuzz/import_parsers.h"

namespace {

const fulcrum::fuzz::ImportParser& chosen_parser() {
  const char* wanted = std::getenv("FULCRUM_FUZZ_PARSER");
  for (const fulcrum::fuzz::ImportParser& parser : fulcrum::fuzz::import_parsers()) {
    if (wanted != nullptr && parser.name == wanted) return parser;
  }
  std::fputs("FULCRUM_FUZZ_PARSER must be one of:", stderr);
  for (const fulcrum::fuzz::ImportParser& parser : fulcrum::fuzz::import_parsers()) {
    std::fprintf(stderr, " %s", parser.name.data());
  }
  std::fputs("\n", stderr);
  std::exit(2);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fulcrum::fuzz::ImportParser& parser = chosen_parser();
  try {
    parser.parse({reinterpret_cast<const char*>(data), size});
  } catch (const fulcrum::InputError&) {
  }
  return 0;
}
