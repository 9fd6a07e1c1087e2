#include "model/io/load_acceptance.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "model/io/data_dir.h"
#include "model/io/json_reader.h"

namespace fulcrum::io {

AcceptanceProfile load_acceptance(const std::string& path) {
  const nlohmann::json value = read_json_file(path);
  std::vector<InputProblem> problems;
  JsonObject object(value, path, "", problems);
  throw_if_any(problems);
  constexpr std::array<std::string_view, 2> kMethods{"mtp", "dspark"};
  AcceptanceProfile profile;
  object.schema("fulcrum/acceptance/1");
  profile.name = object.string("name");
  profile.description = object.string("description");
  profile.method = static_cast<DraftMethod>(object.choice("method", kMethods));
  profile.reached = object.numbers("reached", kFraction);
  if (profile.reached.empty()) object.problem("reached", "is empty", "one entry per draft token");
  if (!std::is_sorted(profile.reached.rbegin(), profile.reached.rend())) {
    object.problem("reached", "rises", "shares that fall: draft i+1 needs draft i");
  }
  const std::vector<double> published = object.numbers("published_accept_length", Range{1, 64});
  if (published.size() == 2 && published[0] <= published[1]) {
    profile.published_low = published[0];
    profile.published_high = published[1];
  } else {
    object.problem("published_accept_length", "is no range", "[low, high]");
  }
  profile.standard_error = object.sourced("standard_error", kFraction).value;
  profile.source = object.string("source");
  object.reject_unknown();
  throw_if_any(problems);
  return profile;
}

std::vector<std::string> acceptance_names() {
  std::vector<std::string> names;
  const std::filesystem::path folder = std::filesystem::path(data_dir()) / "acceptance";
  if (!std::filesystem::exists(folder)) return names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace fulcrum::io
