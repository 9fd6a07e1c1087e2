#include "tests/fuzz/mutate.h"

#include <algorithm>
#include <array>
#include <utility>

namespace fulcrum::fuzz {
namespace {

using nlohmann::json;

void collect(const json& value, const json::json_pointer& at,
             std::vector<json::json_pointer>& out) {
  out.push_back(at);
  if (value.is_object()) {
    for (const auto& [key, child] : value.items()) collect(child, at / key, out);
  } else if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) collect(value[i], at / i, out);
  }
}

json hostile_value(Generator& generator) {
  static const std::array<json, 14> kValues{json(nullptr),
                                            json(-1),
                                            json(0),
                                            json(1e308),
                                            json(-1e308),
                                            json(1e-320),
                                            json(0.5),
                                            json(true),
                                            json(""),
                                            json("\xc3\xa9\"/~"),
                                            json("1e9"),
                                            json(json::array()),
                                            json(json::object()),
                                            json(18446744073709551615ULL)};
  return kValues[pick(generator, kValues.size())];
}

}  // namespace

std::vector<json::json_pointer> pointers_of(const json& document) {
  std::vector<json::json_pointer> pointers;
  collect(document, json::json_pointer(), pointers);
  return pointers;
}

std::string damage_text(std::string text, Generator& generator) {
  const std::size_t num_changes = 1 + pick(generator, 3);
  for (std::size_t i = 0; i < num_changes && !text.empty(); ++i) {
    const std::size_t at = pick(generator, text.size());
    switch (pick(generator, 5)) {
      case 0:
        text[at] = static_cast<char>(pick(generator, 256));
        break;
      case 1:
        text.erase(at, 1 + pick(generator, 8));
        break;
      case 2:
        text.insert(at, text.substr(at, 1 + pick(generator, 40)));
        break;
      case 3:
        text.insert(at, std::string(1 + pick(generator, 2000), '['));
        break;
      default:
        text.resize(at);
        break;
    }
  }
  return text;
}

json damage_value(json document, Generator& generator) {
  const auto pointers = pointers_of(document);
  const auto& at = pointers[pick(generator, pointers.size())];
  if (at.empty() || pick(generator, 4) != 0) {
    document[at] = hostile_value(generator);
    return document;
  }
  json& parent = document[at.parent_pointer()];
  if (parent.is_object()) {
    parent.erase(at.back());
  } else {
    parent.erase(static_cast<std::size_t>(std::stoul(at.back())));
  }
  return document;
}

json rename_key(json document, Generator& generator) {
  auto pointers = pointers_of(document);
  std::erase_if(pointers, [&](const auto& at) {
    return at.empty() || !document[at.parent_pointer()].is_object();
  });
  if (pointers.empty()) return document;
  const auto& at = pointers[pick(generator, pointers.size())];
  json& parent = document[at.parent_pointer()];
  json value = std::move(parent[at.back()]);
  parent.erase(at.back());
  parent["no_schema_knows_this"] = std::move(value);
  return document;
}

}  // namespace fulcrum::fuzz
