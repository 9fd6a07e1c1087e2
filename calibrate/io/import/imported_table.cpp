#include "calibrate/io/import/imported_table.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <set>

#include "model/io/data_dir.h"
#include "model/io/json_reader.h"

namespace fulcrum::calibrate::io {
namespace {

/// Words that makers add without telling one GPU from another.
bool is_generic(const std::string& word) {
  static const std::set<std::string> kGeneric = {
      "nvidia", "geforce", "gpu", "edition", "graphics", "generation", "sxm", "sxm5", "blackwell"};
  if (kGeneric.contains(word)) return true;
  return word.ends_with("gb") || word.starts_with("hbm");  // sizes and memory kinds
}

std::set<std::string> model_words(const std::string& label) {
  std::set<std::string> result;
  std::string word;
  const auto end_word = [&] {
    if (!word.empty() && !is_generic(word)) result.insert(word);
    word.clear();
  };
  for (const char c : label) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else {
      end_word();
    }
  }
  end_word();
  return result;
}

struct KnownGpu {
  std::string name;  ///< of the hardware file
  std::set<std::string> words;
};

std::vector<KnownGpu> known_gpus() {
  namespace fs = std::filesystem;
  std::vector<std::string> files;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(fulcrum::io::data_dir() + "/hardware", ignored)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  std::vector<KnownGpu> known;
  for (const std::string& file : files) {
    const nlohmann::json document = fulcrum::io::read_json_file(file);
    if (!document.is_object() || !document.contains("label") || !document["label"].is_string()) {
      continue;
    }
    known.push_back(
        {fs::path(file).stem().string(), model_words(document["label"].get<std::string>())});
  }
  return known;
}

}  // namespace

std::string file_name(const ImportedTable& table) {
  const auto part = [](const std::string& text) { return text.empty() ? "unknown" : text; };
  return part(table.device) + "__" + table.family + "__" + part(table.engine) + "__" +
         part(table.engine_version) + "__" + table.table + ".csv";
}

std::string csv_text(const ImportedTable& table) {
  std::string text;
  const auto add = [&](const std::vector<std::string>& fields) {
    for (std::size_t i = 0; i < fields.size(); ++i) text += (i == 0 ? "" : ",") + fields[i];
    text += '\n';
  };
  add(table.columns);
  for (const auto& row : table.rows) add(row);
  return text;
}

std::string table_number(double x) {
  std::array<char, 32> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%.9g", x);
  return buffer.data();
}

std::string hardware_of_label(const std::string& label) {
  static const std::vector<KnownGpu> kKnown = known_gpus();
  const std::set<std::string> wanted = model_words(label);
  if (wanted.empty()) return {};
  std::string found;
  for (const KnownGpu& gpu : kKnown) {
    if (!std::includes(gpu.words.begin(), gpu.words.end(), wanted.begin(), wanted.end())) continue;
    if (gpu.words.size() == wanted.size()) return gpu.name;
    if (!found.empty()) return {};
    found = gpu.name;
  }
  return found;
}

}  // namespace fulcrum::calibrate::io
