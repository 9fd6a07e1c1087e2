#include "model/io/data_dir.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "model/errors.h"
#include "model/io/json_reader.h"

namespace fulcrum::io {

namespace fs = std::filesystem;

std::string data_dir() {
  if (const char* dir = std::getenv("FULCRUM_DATA_DIR"); dir != nullptr && *dir != '\0') {
    std::error_code ignored;
    if (fs::is_directory(dir, ignored)) return dir;
    throw InputError({"environment", "FULCRUM_DATA_DIR", std::string("is \"") + dir + "\"",
                      "an existing directory"});
  }
  std::error_code ignored;
  // Beside the running program first: an installed tree may have been moved, or staged elsewhere.
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  const fs::path beside = program.parent_path().parent_path() / "share" / "fulcrum" / "data";
  // Beside the module that holds this code: an installed Python package brings its own data.
  Dl_info here{};
  fs::path packaged;
  if (dladdr(reinterpret_cast<const void*>(&data_dir), &here) != 0 && here.dli_fname != nullptr) {
    packaged = fs::path(here.dli_fname).parent_path() / "data";
  }
  for (const fs::path& dir :
       {beside, packaged, fs::path(FULCRUM_SOURCE_DATA_DIR), fs::path(FULCRUM_INSTALL_DATA_DIR)}) {
    if (fs::is_directory(dir, ignored)) return dir.string();
  }
  throw InputError({"environment", "FULCRUM_DATA_DIR", "no data directory was found",
                    "set it to the data/ folder of the source tree"});
}

std::string resolve(std::string_view folder, const std::string& name, const std::string& file,
                    const std::string& pointer, const std::string& base_dir) {
  std::error_code ignored;
  if (name.ends_with(".json") || name.find('/') != std::string::npos) {
    if (fs::is_regular_file(name, ignored)) return name;
    const fs::path beside = fs::path(base_dir) / name;
    if (!base_dir.empty() && fs::is_regular_file(beside, ignored)) return beside.string();
    throw InputError({file, pointer, "\"" + name + "\" cannot be read", "a readable JSON file"});
  }
  const fs::path directory = fs::path(data_dir()) / folder;
  const fs::path shipped = directory / (name + ".json");
  if (!name.empty() && fs::is_regular_file(shipped, ignored)) return shipped.string();

  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory, ignored)) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  std::string allowed;
  if (const auto near = nearest_name(name, names)) allowed = "did you mean \"" + *near + "\"? ";
  allowed += "known:";
  for (const std::string& known : names) allowed += " " + known;
  throw InputError({file, pointer, "\"" + name + "\" is not in data/" + std::string(folder),
                    allowed + "; or the path of a .json file"});
}

}  // namespace fulcrum::io
