// Imported kernel times in the table form that `fulcrum calibrate` reads.
#pragma once

#include <string>
#include <vector>

namespace fulcrum::calibrate::io {

/// Rows of one aiconfigurator table (calibrate/io/table_kinds.h); times in milliseconds.
struct ImportedTable {
  std::string device{};  ///< hardware file's name with '_' for '-', "" where not known
  std::string engine;
  std::string engine_version;
  std::string family;  ///< "comm", "gemm", ...
  std::string table;   ///< "nccl_perf", ...
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows{};
  std::vector<std::string> notes{};  ///< what was left out and why
};

/// <device>__<family>__<engine>__<version>__<table>.csv
std::string file_name(const ImportedTable& table);
std::string csv_text(const ImportedTable& table);

/// Nine significant digits: more than any clock resolves.
std::string table_number(double x);

/// Name of the hardware file whose label shares the GPU's model words ("NVIDIA H200" ->
/// "h200-sxm", "NVIDIA_GeForce_RTX_5090" -> "rtx-5090"); "" where none or several do.
std::string hardware_of_label(const std::string& label);

}  // namespace fulcrum::calibrate::io
