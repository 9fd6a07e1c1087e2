// The file that measurements are appended to, line by line.
#pragma once

#include <string>

namespace fulcrum::replay {

// Appends whole lines; a write that fails midway (disk full) is cut back to the last complete line,
// and write() throws std::runtime_error with the path and the reason.
class MeasurementFile {
 public:
  explicit MeasurementFile(std::string path);
  ~MeasurementFile();
  MeasurementFile(const MeasurementFile&) = delete;
  MeasurementFile& operator=(const MeasurementFile&) = delete;
  void write(const std::string& line);

 private:
  std::string path_;
  int descriptor_ = -1;
};

}  // namespace fulcrum::replay
