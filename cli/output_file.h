// Files the program leaves behind: whole, or not at all.
#pragma once

#include <string>

namespace fulcrum::cli {

/// Writes `text` beside `path` and moves it there. Throws std::runtime_error naming the path.
void write_file(const std::string& path, const std::string& text);

}  // namespace fulcrum::cli
