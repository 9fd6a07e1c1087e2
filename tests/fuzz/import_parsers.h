// Every parser of `fulcrum import` as a function of bytes, for fuzzers of either kind.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace fulcrum::fuzz {

struct ImportParser {
  std::string_view name;
  /// Parts of fixture names (tests/import/fixtures) that are its seeds.
  std::string_view seeds;
  /// Reads or throws InputError; anything else is a defect.
  void (*parse)(std::string_view bytes);
};

std::span<const ImportParser> import_parsers();

/// A small SQLite export of Nsight Systems, as seed; the program's own, so that it matches the
/// library's page format.
std::string nsys_sqlite_seed();

}  // namespace fulcrum::fuzz
