#include "tests/fuzz/import_parsers.h"

#include <sqlite3.h>

#include "calibrate/io/import/chrome_trace.h"
#include "calibrate/io/import/detect.h"
#include "calibrate/io/import/nccl_tests.h"
#include "calibrate/io/import/nsys_csv.h"
#include "calibrate/io/import/nsys_sqlite.h"
#include "calibrate/io/import/nvbench.h"
#include "calibrate/io/import/tuned_config.h"
#include "calibrate/trace/profile.h"
#include "model/io/import/import_json.h"
#include "model/io/import/server_log.h"
#include "model/io/import/serving_formats.h"
#include "model/io/serving_result_file.h"

namespace fulcrum::fuzz {
namespace {

using fulcrum::io::ByteSource;

/// Small limits: the fuzzer should find what breaks, not what takes long.
constexpr io::ImportLimits kLimits{.max_bytes = 8 << 20, .max_expansion = 250.0};

ByteSource source_of(std::string_view bytes) {
  return ByteSource::from_memory(bytes, "fuzz", kLimits);
}

nlohmann::json first_of(std::string_view bytes) {
  ByteSource source = source_of(bytes);
  return io::parse_import_json(source).front().value;
}

void parse_serving(std::string_view bytes) {
  ByteSource source = source_of(bytes);
  const auto results = io::import_serving_results(io::parse_import_json(source), "fuzz");
  io::serving_results_json(results, "fuzz").dump();
}

void parse_log(std::string_view bytes) {
  ByteSource source = source_of(bytes);
  io::server_log_json(io::read_server_log(source), "fuzz").dump();
}

/// Profiles too: their arithmetic sees the hostile times.
void profile_all(const calibrate::KernelTrace& trace) {
  static const calibrate::TraceRules kNoRules;
  for (std::size_t i = 0; i < trace.devices().size() && i < 4; ++i) {
    calibrate::profile_device(trace, static_cast<std::uint16_t>(i), kNoRules);
  }
}

void parse_torch(std::string_view bytes) {
  ByteSource source = source_of(bytes);
  profile_all(calibrate::io::read_chrome_trace(source));
}

void parse_sqlite(std::string_view bytes) {
  profile_all(calibrate::io::parse_nsys_sqlite(bytes, "fuzz"));
}

void parse_nsys_csv(std::string_view bytes) {
  ByteSource source = source_of(bytes);
  profile_all(calibrate::io::read_nsys_csv(source).trace);
}

void parse_nccl_text(std::string_view bytes) {
  ByteSource source = source_of(bytes);
  calibrate::io::csv_text(calibrate::io::read_nccl_text(source, ""));
}

void parse_nccl_json(std::string_view bytes) {
  calibrate::io::csv_text(calibrate::io::read_nccl_json(first_of(bytes), "fuzz", ""));
}

void parse_nvbench(std::string_view bytes) {
  const auto result = calibrate::io::read_nvbench(first_of(bytes), "fuzz");
  calibrate::io::gemm_tables(result);
  calibrate::io::nvbench_json(result, "fuzz").dump();
}

void parse_tuned(std::string_view bytes) {
  const auto config = calibrate::io::read_tuned_config(
      first_of(bytes), "N=1536,K=4096,device_name=X,dtype=fp8_w8a8,block_shape=[128, 128].json");
  calibrate::io::tuned_config_json(config, "fuzz").dump();
}

void parse_detect(std::string_view bytes) {
  ByteSource source = source_of(bytes);
  calibrate::io::detect_container(source);
}

constexpr ImportParser kParsers[] = {
    {"serving", "sglang_0_5.jsonl,vllm_0_8,vllm_0_15,genai,aiperf,inferencex", parse_serving},
    {"server_log", "server.log", parse_log},
    {"torch_trace", "torch_small", parse_torch},
    {"nsys_sqlite", "", parse_sqlite},
    {"nsys_csv", "nsys_", parse_nsys_csv},
    {"nccl_text", "nccl_tests_2_0,nccl_tests_2_17.txt", parse_nccl_text},
    {"nccl_json", "nccl_tests_2_17.json", parse_nccl_json},
    {"nvbench", "nvbench", parse_nvbench},
    {"tuned_config", "N=,E=", parse_tuned},
    {"detect", ".log,.csv,.txt,.jsonl", parse_detect},
};

}  // namespace

std::span<const ImportParser> import_parsers() { return kParsers; }

std::string nsys_sqlite_seed() {
  sqlite3* database = nullptr;
  sqlite3_open(":memory:", &database);
  sqlite3_exec(
      database,
      "PRAGMA page_size = 512;"
      "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);"
      "INSERT INTO StringIds VALUES (1, 'gemm'), (2, 'argmax');"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId "
      "INTEGER, streamId INTEGER, correlationId INTEGER, demangledName INTEGER, "
      "graphNodeId INTEGER);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (100, 200, 0, 7, 1, 1, 9), (210, 220, "
      "0, 7, 2, 2, 0), (300, 400, 0, 7, 3, 1, 9), (410, 420, 0, 7, 4, 2, 0), (500, 600, 0, "
      "7, 5, 1, 9), (610, 620, 0, 7, 6, 2, 0);",
      nullptr, nullptr, nullptr);
  sqlite3_int64 size = 0;
  unsigned char* bytes = sqlite3_serialize(database, "main", &size, 0);
  std::string result(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
  sqlite3_free(bytes);
  sqlite3_close(database);
  return result;
}

}  // namespace fulcrum::fuzz
