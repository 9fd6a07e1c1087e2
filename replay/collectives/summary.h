// The table at the end: per size the time of every setting, the fastest marked.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "replay/io/collective_record.h"

namespace fulcrum::replay::collectives {

class Summary {
 public:
  void add(const CollectiveLine& line);
  /// One block per collective and way of launching; microseconds, '*' after the fastest. Settings
  /// whose times differ from the fastest by less than their intervals are marked too.
  std::string text() const;

 private:
  struct Cell {
    double seconds = 0.0;
    double half_width_fraction = 0.0;
    bool sound = false;  ///< status ok
  };
  struct Block {
    std::vector<std::string> settings;  ///< in order of appearance
    std::map<std::int64_t, std::map<std::string, Cell>> rows;
  };
  std::map<std::string, Block> blocks_;
  std::vector<std::string> problems_;
};

}  // namespace fulcrum::replay::collectives
