#include "cli/output_file.h"

#include <cstdio>
#include <fstream>
#include <stdexcept>

namespace fulcrum::cli {

void write_file(const std::string& path, const std::string& text) {
  const std::string scratch = path + ".part";
  std::ofstream out(scratch, std::ios::binary);
  out << text;
  out.close();
  if (!out || std::rename(scratch.c_str(), path.c_str()) != 0) {
    std::remove(scratch.c_str());
    throw std::runtime_error(path + " cannot be written");
  }
}

}  // namespace fulcrum::cli
