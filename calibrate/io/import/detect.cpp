#include "calibrate/io/import/detect.h"

namespace fulcrum::calibrate::io {
namespace {

bool holds(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

char first_character(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  const std::size_t at = text.find_first_not_of(" \t\r\n");
  return at == std::string_view::npos ? '\0' : text[at];
}

}  // namespace

std::optional<ImportFormat> import_format_named(std::string_view name) {
  for (std::size_t i = 0; i < kImportFormatNames.size(); ++i) {
    if (kImportFormatNames[i] == name) return static_cast<ImportFormat>(i);
  }
  return std::nullopt;
}

std::optional<Container> detect_container(fulcrum::io::ByteSource& source) {
  const std::string_view head = source.peek();
  if (head.starts_with("SQLite format 3")) return Container::kSqlite;
  const char first = first_character(head);
  const bool log = holds(head, "server_args=ServerArgs(") || holds(head, "non-default args: {") ||
                   holds(head, "max_total_num_tokens=") || holds(head, "LLM engine (v") ||
                   holds(head, "GPU KV cache size:") || holds(head, "Load weight begin") ||
                   holds(head, "Decode batch");
  if (log && first != '{') return Container::kServerLog;  // "[2026-08-01 12:00:00] .." starts so
  if (holds(head, "busbw") && holds(head, "algbw")) return Container::kNcclText;
  const bool events = holds(head, "\"traceEvents\"") ||
                      (holds(head, "\"ph\"") && holds(head, "\"ts\"")) ||
                      (holds(head, "\"deviceProperties\"") && holds(head, "\"schemaVersion\""));
  if (events && (first == '{' || first == '[')) return Container::kTorchTrace;
  if (first == '{' || first == '[') return Container::kJson;
  if (holds(head, "Name") && (holds(head, "Total Time") || holds(head, "Duration"))) {
    return Container::kNsysCsv;
  }
  return std::nullopt;
}

Container container_of(ImportFormat format, fulcrum::io::ByteSource& source) {
  switch (format) {
    case ImportFormat::kTorchTrace:
      return Container::kTorchTrace;
    case ImportFormat::kNsysSqlite:
      return Container::kSqlite;
    case ImportFormat::kNsysCsv:
      return Container::kNsysCsv;
    case ImportFormat::kServerLog:
      return Container::kServerLog;
    case ImportFormat::kNcclTests:
      return first_character(source.peek()) == '{' ? Container::kJson : Container::kNcclText;
    default:
      return Container::kJson;
  }
}

}  // namespace fulcrum::calibrate::io
