// Damaged variants of JSON documents, by a seeded generator: the same on every machine.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

namespace fulcrum::fuzz {

using Generator = std::mt19937_64;

/// A number in [0, bound). std::uniform_int_distribution differs between standard libraries.
inline std::size_t pick(Generator& generator, std::size_t bound) {
  return static_cast<std::size_t>(generator() % bound);
}

/// Pointers to every value of the document, the root included.
std::vector<nlohmann::json::json_pointer> pointers_of(const nlohmann::json& document);

/// Text with a few bytes changed, removed, repeated or cut off.
std::string damage_text(std::string text, Generator& generator);

/// A document of the same shape in which one value is gone, of another type or out of range.
nlohmann::json damage_value(nlohmann::json document, Generator& generator);

/// The document with one object key renamed to a word no schema knows; unchanged if it has none.
nlohmann::json rename_key(nlohmann::json document, Generator& generator);

}  // namespace fulcrum::fuzz
