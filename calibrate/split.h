// Which rows are fitted, held out, or lie at the frontier.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "calibrate/family.h"

namespace fulcrum::calibrate {

/// Rows of a series by group of equal shape (Family::shape_group).
struct Groups {
  std::vector<std::uint32_t> of_row;  ///< group number of each record
  std::vector<std::uint64_t> hash;    ///< of each group's text, stable across runs and files
  std::size_t size() const { return hash.size(); }
};
Groups group_by_shape(const Family& family, std::span<const Record> records);

/// One way to divide the rows.
struct Fold {
  std::vector<std::uint32_t> fitted;
  std::vector<std::uint32_t> held_out;
};

/// Folds over the rows that are not at the frontier. One fold with `fraction` of the groups held
/// out if there are at least `min_groups`; else `num_folds` folds that hold out each group once.
/// The choice depends on the group's text and the seed only, not on the order of the rows. No folds
/// if there is just one group.
std::vector<Fold> make_folds(const Groups& groups, const std::vector<bool>& frontier,
                             double fraction, std::size_t min_rows, int num_folds,
                             std::uint64_t seed);

/// At most `count` of the rows, spread evenly over them; a seeded hash chooses.
std::vector<std::uint32_t> thin(RowIndices rows, std::size_t count, std::uint64_t seed);

}  // namespace fulcrum::calibrate
