#include "calibrate/split.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <unordered_map>

#include "calibrate/random.h"

namespace fulcrum::calibrate {
namespace {

/// FNV-1a, 64 bit, finished by mix64.
std::uint64_t hash_text(const std::string& text) {
  std::uint64_t h = 0xcbf29ce484222325ULL;
  for (const unsigned char c : text) h = (h ^ c) * 0x100000001b3ULL;
  return mix64(h);
}

}  // namespace

Groups group_by_shape(const Family& family, std::span<const Record> records) {
  Groups groups;
  groups.of_row.reserve(records.size());
  std::unordered_map<std::string, std::uint32_t> known;
  for (const Record& record : records) {
    const auto [found, fresh] =
        known.try_emplace(family.shape_group(record), static_cast<std::uint32_t>(known.size()));
    if (fresh) groups.hash.push_back(hash_text(found->first));
    groups.of_row.push_back(found->second);
  }
  return groups;
}

std::vector<Fold> make_folds(const Groups& groups, const std::vector<bool>& frontier,
                             double fraction, std::size_t min_rows, int num_folds,
                             std::uint64_t seed) {
  // Groups in hashed order: a prefix is a random draw.
  std::vector<bool> inside(groups.size(), false);
  std::size_t num_inside = 0;
  for (std::size_t i = 0; i < frontier.size(); ++i) {
    if (frontier[i]) continue;
    inside[groups.of_row[i]] = true;
    ++num_inside;
  }
  std::vector<std::uint32_t> order;
  for (std::uint32_t g = 0; g < groups.size(); ++g) {
    if (inside[g]) order.push_back(g);
  }
  if (order.size() < 2) return {};
  const auto key = [&](std::uint32_t g) { return mix64(groups.hash[g] + mix64(seed)); };
  std::sort(order.begin(), order.end(),
            [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });

  const bool single = num_inside >= min_rows;
  const std::size_t count =
      single ? 1 : std::min(static_cast<std::size_t>(num_folds), order.size());
  std::vector<std::size_t> fold_of(groups.size(), count);  // count = never held out
  const auto drawn =
      static_cast<std::size_t>(std::lround(fraction * static_cast<double>(order.size())));
  for (std::size_t k = 0; k < order.size(); ++k) {
    if (!single) {
      fold_of[order[k]] = k % count;
    } else if (k < drawn) {
      fold_of[order[k]] = 0;
    }
  }
  std::vector<Fold> folds(count);
  for (std::uint32_t i = 0; i < frontier.size(); ++i) {
    if (frontier[i]) continue;
    for (std::size_t f = 0; f < count; ++f) {
      (fold_of[groups.of_row[i]] == f ? folds[f].held_out : folds[f].fitted).push_back(i);
    }
  }
  return folds;
}

std::vector<std::uint32_t> thin(RowIndices rows, std::size_t count, std::uint64_t seed) {
  std::vector<std::uint32_t> chosen(rows.begin(), rows.end());
  if (chosen.size() <= count) return chosen;
  const auto key = [&](std::uint32_t i) { return mix64(mix64(seed) + i); };
  std::nth_element(chosen.begin(), chosen.begin() + static_cast<std::ptrdiff_t>(count),
                   chosen.end(), [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });
  chosen.resize(count);
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

}  // namespace fulcrum::calibrate
