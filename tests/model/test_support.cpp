#include "tests/model/test_support.h"

#include "model/io/load_model.h"

namespace fulcrum::test {

std::string data_path(const std::string& relative) {
  return std::string(FULCRUM_SOURCE_DIR) + "/data/" + relative;
}

Deployment deployment(const std::string& scenario, const Changes& changes) {
  io::ScenarioDocument document = io::read_scenario(data_path("scenarios/" + scenario + ".json"));
  for (const auto& [pointer, value] : changes) io::set_value(document, pointer, value);
  std::vector<std::string> warnings;
  return io::resolve_scenario(document, warnings);
}

ModelConfig model(const std::string& name) {
  return io::load_model(data_path("models/" + name + ".json"));
}

}  // namespace fulcrum::test
