#include "replay/io/measurement_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace fulcrum::replay {

MeasurementFile::MeasurementFile(std::string path) : path_(std::move(path)) {
  descriptor_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (descriptor_ < 0) {
    throw std::runtime_error("cannot open '" + path_ + "' for appending: " + std::strerror(errno));
  }
}

MeasurementFile::~MeasurementFile() { (void)close(descriptor_); }

void MeasurementFile::write(const std::string& line) {
  const std::string text = line + "\n";
  const off_t begin = lseek(descriptor_, 0, SEEK_END);
  std::size_t written = 0;
  while (written < text.size()) {
    const ssize_t n = ::write(descriptor_, text.data() + written, text.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      const std::string reason = std::strerror(errno);
      if (begin >= 0 && ftruncate(descriptor_, begin) != 0) {
        throw std::runtime_error("cannot write '" + path_ + "': " + reason +
                                 "; its last line is incomplete");
      }
      throw std::runtime_error("cannot write '" + path_ + "': " + reason +
                               "; everything measured before is kept");
    }
    written += static_cast<std::size_t>(n);
  }
}

}  // namespace fulcrum::replay
