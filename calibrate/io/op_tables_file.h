// Records of `replay step` in measurement files, and the file of op tables made from them.
#pragma once

#include <string>
#include <vector>

#include "calibrate/op_tables.h"

namespace fulcrum::calibrate::io {

struct StepRecords {
  std::string file;
  std::string sha256;
  std::string device;   ///< as the driver names it
  std::string git_sha;  ///< of the kernels that ran
  std::string model;
  std::vector<OpRecord> alone;
  std::vector<OpRecord> in_step;  ///< target pass only
};

/// Throws InputError: unreadable, not JSON lines of schema fulcrum/measurement/1, no op records.
StepRecords read_step_records(const std::string& path);

struct OpTablesHeader {
  std::string hardware;
  std::string source;
  std::string date;
};
/// Schema fulcrum/op_tables/1.
std::string op_tables_text(const OpTablesHeader& header, const std::vector<StepRecords>& files,
                           const std::vector<TabulatedOp>& tables);

}  // namespace fulcrum::calibrate::io
