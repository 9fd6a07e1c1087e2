// JSON as measurement tools write it: Python's NaN and Infinity, one value or one a line, raw
// samples in the millions. What an importer cannot need is dropped while it is read.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <streambuf>
#include <string>
#include <vector>

#include "model/io/import/byte_source.h"

namespace fulcrum::io {

/// What a hostile file may make an importer keep.
inline constexpr std::size_t kMaxJsonDepth = 64;
inline constexpr std::size_t kMaxJsonValues = 1'000'000;
inline constexpr std::size_t kMaxJsonText = 16'384;    ///< of one string; the rest is cut off
inline constexpr std::size_t kMaxScalarElements = 64;  ///< of one array of scalars; rest dropped

/// Characters of a source with the words NaN, Infinity and -Infinity (Python's json.dumps writes
/// them for non-finite floats) replaced by null, and a byte-order mark skipped.
class ImportText : public std::streambuf {
 public:
  explicit ImportText(ByteSource& source);
  /// Line of the next character, from 1.
  std::uint64_t line() const;
  const std::string& name() const { return source_.name(); }

 protected:
  int_type underflow() override;

 private:
  void put(char c);
  void end_word();

  ByteSource& source_;
  std::vector<char> out_;
  std::string word_;  ///< letters outside strings, held back until they end; '-' before them too
  bool in_string_ = false;
  bool escaped_ = false;
  bool at_start_ = true;
  std::uint64_t lines_before_ = 0;  ///< in buffers already replaced
};

/// One JSON value and where it starts.
struct ImportedDocument {
  std::uint64_t line = 1;
  nlohmann::json value;
};

/// Every value of the source. Arrays of scalars keep their first kMaxScalarElements, arrays within
/// arrays are dropped, long strings are cut. Throws InputError: not JSON, not UTF-8, a key twice,
/// nested or numerous beyond the limits, a number no double holds.
std::vector<ImportedDocument> parse_import_json(ByteSource& source);

/// InputError of a JSON value of an imported file.
[[noreturn]] void fail_json(const std::string& file, std::uint64_t line, const std::string& message,
                            const std::string& allowed = {});

}  // namespace fulcrum::io
