// Kernel tables of other tools, one fixture per tool and version (fixtures/manifest.md).
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>

#include <filesystem>

#include "calibrate/io/import/detect.h"
#include "calibrate/io/import/nccl_tests.h"
#include "calibrate/io/import/nsys_csv.h"
#include "calibrate/io/import/nsys_sqlite.h"
#include "calibrate/io/import/nvbench.h"
#include "calibrate/io/import/tuned_config.h"
#include "calibrate/io/read_table.h"
#include "model/errors.h"
#include "model/io/import/import_json.h"

namespace fulcrum::calibrate::io {
namespace {

using fulcrum::io::ByteSource;

const std::string kFixtures = FULCRUM_SOURCE_DIR "/tests/import/fixtures/";

nlohmann::json json_of(const std::string& name) {
  ByteSource source = ByteSource::from_file(kFixtures + name);
  return fulcrum::io::parse_import_json(source).at(0).value;
}

ImportedTable nccl(const std::string& name, const std::string& operation = "") {
  ByteSource source = ByteSource::from_file(kFixtures + name);
  return read_nccl_text(source, operation);
}

template <class Call>
std::string refusal(const Call& call) {
  try {
    call();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(NcclTests, RowsAreElementsAndMillisecondsAndWrongOnesAreLeftOut) {
  const ImportedTable table = nccl("nccl_tests_2_17.txt");
  EXPECT_EQ(file_name(table), "rtx_pro_6000_server__comm__nccl__2.28.9__nccl_perf.csv");
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.rows[1],
            (std::vector<std::string>{"all_reduce", "NCCL", "bfloat16", "4", "524288", "0.1"}));
  EXPECT_EQ(table.notes, (std::vector<std::string>{"rows with wrong results left out: 1"}));
}

TEST(NcclTests, CalibrateReadsWhatImportWrites) {
  const ImportedTable table = nccl("nccl_tests_2_17.txt");
  const MeasurementTable read = parse_table(csv_text(table), file_name(table));
  ASSERT_EQ(read.series.size(), 1U);
  EXPECT_TRUE(read.quarantined.empty());
  EXPECT_EQ(read.device, "rtx_pro_6000_server");
  EXPECT_EQ(read.series[0].key.engine_version, "2.28.9");
  EXPECT_DOUBLE_EQ(read.series[0].records[1].latency_seconds, 1e-4);
}

// 2 ranks: bus over algorithm bandwidth is 2 (n - 1) / n = 1 for an all-reduce.
TEST(NcclTests, OldOutputUnderMpiNamesItsCollectiveByItsBandwidths) {
  const ImportedTable table = nccl("nccl_tests_2_0_mpi.txt");
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.rows[0],
            (std::vector<std::string>{"all_reduce", "NCCL", "float", "2", "2097152", "0.8"}));
  EXPECT_EQ(table.device, "h200_sxm");
  EXPECT_EQ(nccl("nccl_tests_2_0_mpi.txt", "all_gather").rows[0][0], "all_gather");
}

// Found by libFuzzer: a version that no integer holds.
TEST(NcclTests, AbsurdVersionsAreUnknown) {
  nlohmann::json document = json_of("nccl_tests_2_17.json");
  document["nccl_version"] = 1e17;
  EXPECT_EQ(read_nccl_json(document, "x.json", "").engine_version, "");
}

// Found by mutation: a line that ends where the version should follow.
TEST(NcclTests, MissingVersionsAreUnknown) {
  const std::string text =
      "# nccl-tests version 2.17.6 nccl-library=\n# Collective test starting: all_reduce_perf\n"
      "#  Rank  0 Group  0 Pid 1 on host device  0 [0x01] NVIDIA H200\n"
      "#  Rank  1 Group  0 Pid 1 on host device  1 [0x02] NVIDIA H200\n"
      "#  size  count  type  redop  root  time  algbw  busbw  #wrong\n"
      "  1024  512  half  sum  -1  20.0  0.05  0.05  0\n";
  ByteSource source = ByteSource::from_memory(text, "memory");
  const ImportedTable table = read_nccl_text(source, "");
  EXPECT_EQ(table.engine_version, "");
  EXPECT_EQ(table.rows.size(), 1U);
}

TEST(NcclTests, JsonSaysTheSame) {
  const ImportedTable table = read_nccl_json(json_of("nccl_tests_2_17.json"), "x.json", "");
  EXPECT_EQ(table.engine_version, "2.29.2");
  ASSERT_EQ(table.rows.size(), 1U);
  EXPECT_EQ(table.rows[0],
            (std::vector<std::string>{"all_gather", "NCCL", "half", "2", "32768", "0.0125"}));
}

TEST(Nvbench, BothFormsGiveColdTimes) {
  const NvbenchResult now = read_nvbench(json_of("nvbench_1_0.json"), "x.json");
  EXPECT_EQ(now.num_skipped, 1U);
  ASSERT_EQ(now.states.size(), 2U);
  EXPECT_DOUBLE_EQ(*now.states[0].cold_seconds, 1.5e-5);
  EXPECT_DOUBLE_EQ(*now.states[0].batch_seconds, 1.2e-5);
  const NvbenchResult old = read_nvbench(json_of("nvbench_2021.json"), "x.json");
  EXPECT_EQ(gemm_tables(old).at(0).rows.at(0), gemm_tables(now).at(0).rows.at(0));
  EXPECT_EQ(gemm_tables(now)[0].rows[0], (std::vector<std::string>{"gemm", "fp8_gemm", "unknown",
                                                                   "1", "4096", "2048", "0.015"}));
}

TEST(TunedConfig, TakesItsShapeFromTheName) {
  const std::string gemm =
      "N=1536,K=4096,device_name=NVIDIA_RTX_PRO_6000_Blackwell_Server_Edition,dtype=fp8_w8a8,"
      "block_shape=[128, 128].json";
  const TunedConfig config = read_tuned_config(json_of(gemm), "dir/" + gemm);
  EXPECT_EQ(config.n, 1536.0);
  EXPECT_EQ(config.k, 4096.0);
  EXPECT_EQ(config.hardware, "rtx-pro-6000-server");
  EXPECT_EQ(config.block_shape, (std::vector<double>{128.0, 128.0}));
  ASSERT_EQ(config.tiles.size(), 3U);
  EXPECT_EQ(config.tiles[2].m, 64.0);
  EXPECT_EQ(config.tiles[2].block_m, 64.0);
  const std::string moe =
      "E=256,N=512,device_name=NVIDIA_H200,dtype=fp8_w8a8,block_shape=[128, 128].json";
  EXPECT_EQ(read_tuned_config(json_of(moe), moe).num_experts, 256.0);
  EXPECT_NE(refusal([&] { read_tuned_config(json_of(gemm), "config.json"); }).find("shape"),
            std::string::npos);
}

TEST(NsysCsv, TotalsAreFoundBehindTheChatter) {
  ByteSource source = ByteSource::from_file(kFixtures + "nsys_kern_sum.csv");
  const NsysCsv report = read_nsys_csv(source);
  ASSERT_EQ(report.totals.size(), 3U);
  EXPECT_DOUBLE_EQ(report.totals[0].seconds, 0.06);
  EXPECT_DOUBLE_EQ(report.totals[1].count, 430.0);
  EXPECT_EQ(report.totals[1].name.substr(0, 30), "void marlin_moe_wna16::Marlin<");
}

TEST(NsysCsv, ActivitiesKeepTheirUnits) {
  ByteSource source = ByteSource::from_file(kFixtures + "nsys_gpu_trace_us.csv");
  const NsysCsv report = read_nsys_csv(source);
  ASSERT_EQ(report.trace.activities().size(), 7U);
  EXPECT_EQ(report.trace.activities()[1].start_ns, 111'000);
  EXPECT_EQ(report.trace.activities()[1].duration_ns, 2'000);
  EXPECT_EQ(report.trace.devices().at(0), "NVIDIA H200 (0)");
}

/// A database with the given statements, removed at the end.
class NsysSqlite : public testing::Test {
 protected:
  ~NsysSqlite() override { std::filesystem::remove(path_); }
  KernelTrace read(const std::string& statements) {
    std::filesystem::remove(path_);
    sqlite3* database = nullptr;
    EXPECT_EQ(sqlite3_open(path_.c_str(), &database), SQLITE_OK);
    char* message = nullptr;
    EXPECT_EQ(sqlite3_exec(database, statements.c_str(), nullptr, nullptr, &message), SQLITE_OK)
        << message;
    sqlite3_close(database);
    return read_nsys_sqlite(path_);
  }
  std::string path_ = (std::filesystem::temp_directory_path() /
                       ("fulcrum-nsys-" + std::to_string(getpid()) + ".sqlite"))
                          .string();
};

constexpr const char* kStrings =
    "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);"
    "INSERT INTO StringIds VALUES (1, 'gemm'), (2, 'argmax');";

TEST_F(NsysSqlite, ReadsKernelsCopiesAndGraphNodes) {
  const KernelTrace trace =
      read(std::string(kStrings) +
           "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, "
           "streamId INTEGER, correlationId INTEGER, demangledName INTEGER, shortName INTEGER, "
           "graphNodeId INTEGER);"
           "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (100, 200, 0, 7, 11, 1, 2, 99),"
           " (300, 350, 1, 7, 12, 2, 2, NULL);"
           "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER, "
           "streamId INTEGER, correlationId INTEGER, bytes INTEGER);"
           "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (210, 220, 0, 7, 13, 4096);");
  ASSERT_EQ(trace.activities().size(), 3U);
  EXPECT_EQ(trace.devices().size(), 2U);
  EXPECT_EQ(trace.names()[trace.activities()[0].name], "gemm");
  EXPECT_TRUE(trace.activities()[0].in_graph);
  EXPECT_FALSE(trace.activities()[1].in_graph);
  EXPECT_EQ(trace.activities()[2].duration_ns, 10);
}

TEST_F(NsysSqlite, GraphsTracedAsAWholeAreBusyTimeAndSaidToBe) {
  const KernelTrace trace = read(
      "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER, end INTEGER, deviceId INTEGER, "
      "streamId INTEGER, correlationId INTEGER, graphId INTEGER);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (0, 1000, 0, 7, 1, 3), (1100, 2000, 0, "
      "7, "
      "2, 3);");
  EXPECT_EQ(trace.activities().size(), 2U);
  ASSERT_EQ(trace.notes.size(), 1U);
  EXPECT_NE(trace.notes[0].find("--cuda-graph-trace=node"), std::string::npos);
}

TEST_F(NsysSqlite, MissingTablesColumnsAndDamageAreRefused) {
  EXPECT_NE(refusal([&] { read(kStrings); }).find("no GPU activity"), std::string::npos);
  EXPECT_NE(refusal([&] {
              read("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, streamId INTEGER);");
            }).find("lacks the column"),
            std::string::npos);
  EXPECT_NE(refusal([&] {
              read(
                  "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, "
                  "demangledName INTEGER);");
            }).find("names no kernels"),
            std::string::npos);
  EXPECT_NE(refusal([&] {
              read(
                  "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, name TEXT);"
                  "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (100, 50, 'k');");
            }).find("ends before it starts"),
            std::string::npos);
  EXPECT_THROW(read_nsys_sqlite(kFixtures + "sglang_0_5.jsonl"), InputError);
  EXPECT_THROW(read_nsys_sqlite("no/such/file"), InputError);
  // A view over a bomb in place of the table is not even looked at.
  EXPECT_NE(refusal([&] {
              read(
                  "CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE c(x) AS (SELECT 1 "
                  "UNION ALL SELECT x + 1 FROM c) SELECT x AS start, x AS end FROM c;");
            }).find("no GPU activity"),
            std::string::npos);
}

TEST(Detection, FindsTheFormatOfEveryFixture) {
  const auto container = [](const std::string& name) {
    ByteSource source = ByteSource::from_file(kFixtures + name);
    return detect_container(source);
  };
  EXPECT_EQ(container("sglang_0_5.jsonl"), Container::kJson);
  EXPECT_EQ(container("nvbench_1_0.json"), Container::kJson);
  EXPECT_EQ(container("torch_2_9_rank0.json.gz"), Container::kTorchTrace);
  EXPECT_EQ(container("nccl_tests_2_0_mpi.txt"), Container::kNcclText);
  EXPECT_EQ(container("nsys_kern_sum.csv"), Container::kNsysCsv);
  EXPECT_EQ(container("nsys_gpu_trace_us.csv"), Container::kNsysCsv);
  EXPECT_EQ(container("sglang_0_5_server.log"), Container::kServerLog);
  EXPECT_EQ(container("vllm_0_20_server.log"), Container::kServerLog);
  EXPECT_EQ(container("manifest.md"), std::nullopt);
}

TEST(Hardware, IsFoundByTheNamesDriversGive) {
  EXPECT_EQ(hardware_of_label("NVIDIA H200"), "h200-sxm");
  EXPECT_EQ(hardware_of_label("NVIDIA H100 80GB HBM3"), "h100-sxm");
  EXPECT_EQ(hardware_of_label("NVIDIA B200"), "b200-sxm");
  EXPECT_EQ(hardware_of_label("NVIDIA GeForce RTX 5090"), "rtx-5090");
  EXPECT_EQ(hardware_of_label("NVIDIA RTX PRO 6000 Blackwell Workstation Edition"),
            "rtx-pro-6000-workstation");
  EXPECT_EQ(hardware_of_label("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition"),
            "rtx-pro-6000-maxq");
  EXPECT_EQ(hardware_of_label("NVIDIA RTX PRO 6000"), "") << "three GPUs share these words";
  EXPECT_EQ(hardware_of_label("Tesla V100"), "");
}

}  // namespace
}  // namespace fulcrum::calibrate::io
