// What kind of file an import was given, from its first bytes.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "model/io/import/byte_source.h"

namespace fulcrum::calibrate::io {

/// The names of formats a user may give, in the order help lists them.
enum class ImportFormat {
  kSglang,
  kVllm,
  kGenaiPerf,
  kAiperf,
  kInferencex,
  kTorchTrace,
  kNsysSqlite,
  kNsysCsv,
  kNcclTests,
  kNvbench,
  kTunedConfig,
  kServerLog,
};
inline constexpr std::array<std::string_view, 12> kImportFormatNames = {
    "sglang",      "vllm",     "genai-perf", "aiperf",  "inferencex",   "torch-trace",
    "nsys-sqlite", "nsys-csv", "nccl-tests", "nvbench", "tuned-config", "server-log"};

std::optional<ImportFormat> import_format_named(std::string_view name);

/// How a file must be read. kJson: parsed first, then told apart by its keys.
enum class Container { kJson, kTorchTrace, kSqlite, kNsysCsv, kNcclText, kServerLog };

/// From the first bytes, which are not consumed; nullopt where nothing fits.
std::optional<Container> detect_container(fulcrum::io::ByteSource& source);

/// The container of a format; `source` decides where a format has two (nccl-tests).
Container container_of(ImportFormat format, fulcrum::io::ByteSource& source);

}  // namespace fulcrum::calibrate::io
