#include <gtest/gtest.h>

#include <cmath>

#include "calibrate/io/read_table.h"
#include "calibrate/io/sha256.h"
#include "calibrate/measurement_table.h"
#include "model/errors.h"
#include "tests/calibrate/toy_family.h"

namespace fulcrum::calibrate {
namespace {

constexpr const char* kName = "toy__gemm__sglang__0.5__gemm_perf.csv";
constexpr const char* kHeader = "op_name,kernel_source,gemm_dtype,m,n,k,latency_ms\n";

MeasurementTable parse(const std::string& rows, const std::string& name = kName) {
  return io::parse_table(kHeader + rows, name);
}

MeasurementTable screened(const std::string& rows) {
  MeasurementTable table = parse(rows);
  screen(table, toy::device());
  return table;
}

/// m = 1, 2, 4, ... of one shape at the given microseconds.
std::string line_of(const std::vector<double>& microseconds) {
  std::string rows;
  int m = 1;
  for (const double us : microseconds) {
    rows +=
        "gemm,lib,bfloat16," + std::to_string(m) + ",4096,4096," + std::to_string(us * 1e-3) + "\n";
    m *= 2;
  }
  return rows;
}

TEST(Sha256, TheStandardsExamplesHold) {
  // FIPS 180-4 examples: "abc" and the 448-bit message, which needs a second padding block.
  EXPECT_EQ(io::sha256_hex("abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(io::sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST(ReadTable, NameAndColumnsMakeTheSeries) {
  const MeasurementTable table =
      parse("gemm,lib,bfloat16,1,128,256,0.005\ngemm,other,fp8,2,128,256,0.006\n");
  ASSERT_EQ(table.series.size(), 2U);
  EXPECT_EQ(to_string(table.series[0].key), "toy/sglang/0.5/gemm_perf/gemm/lib/bfloat16");
  EXPECT_EQ(table.series[1].key.dtype, "fp8");
  const Record& record = table.series[1].records[0];
  EXPECT_EQ(std::get<GemmRow>(record.shape).n, 128.0);
  EXPECT_DOUBLE_EQ(record.latency_seconds, 6e-6);
  EXPECT_EQ(record.line, 3U);
  EXPECT_EQ(table.sha256.size(), 64U);
}

TEST(ReadTable, EachTableFormIsRecognisedByItsColumns) {
  const auto moe = io::parse_table(
      "op_name,kernel_source,moe_dtype,num_tokens,hidden_size,inter_size,topk,num_experts,"
      "moe_tp_size,moe_ep_size,distribution,latency_ms\n"
      "moe,lib,fp8,1,3072,1024,8,256,16,16,power_law_1.01,0.026\n"
      "moe,lib,fp8,1,3072,1024,8,256,16,16,nonsense,0.026\n",
      "toy__moe__trtllm__1__moe_perf.csv");
  const auto& row = std::get<MoeRow>(moe.series[0].records[0].shape);
  EXPECT_EQ(row.routing, Routing::kPowerLaw);
  EXPECT_DOUBLE_EQ(row.power_law_alpha, 1.01);
  ASSERT_EQ(moe.quarantined.size(), 1U);
  EXPECT_EQ(moe.quarantined[0].detail, "unknown distribution 'nonsense'");

  const auto attention = io::parse_table(
      "op_name,kernel_source,model,mla_dtype,kv_cache_dtype,gemm_type,num_heads,batch_size,isl,"
      "tp_size,step,compress_ratio,latency_ms\n"
      "dsv4_csa_generation_module,fm,M,bfloat16,fp8_e4m3,bfloat16,64,2,1,1,0,4,0.19\n",
      "toy__sparse_attention__sglang__1__x.csv");
  EXPECT_EQ(attention.series[0].key.table, "dsv4_csa_generation_module_perf");
  EXPECT_EQ(std::get<AttentionRow>(attention.series[0].records[0].shape).context_tokens, 0.0);

  const auto nccl = io::parse_table(
      "op_name,kernel_source,nccl_dtype,num_gpus,message_size,latency_ms\n"
      "alltoall,NCCL,half,4,256,0.006\n",
      "toy__comm__nccl__2__nccl_perf.csv");
  const auto& message = std::get<CollectiveRow>(nccl.series[0].records[0].shape);
  EXPECT_EQ(message.kind, CollectiveKind::kAllToAll);
  EXPECT_EQ(message.element_bytes, 2.0);
}

TEST(ReadTable, BadRowsAreSetAsideWithTheLineAndTheReason) {
  const MeasurementTable table = parse(
      "gemm,lib,bfloat16,1,128,256,nan\n"
      "gemm,lib,bfloat16,1,128,256,-0.1\n"
      "gemm,lib,bfloat16,1,128,256,fast\n"
      "gemm,lib,bfloat16,0,128,256,0.1\n"
      "gemm,lib,bfloat16,128,256,0.1\n"
      "gemm,lib,bfloat16,1,128,256,0.1\n");
  EXPECT_EQ(table.num_rows, 6U);
  ASSERT_EQ(table.quarantined.size(), 5U);
  constexpr QuarantineReason kExpected[] = {
      QuarantineReason::kNotPositive, QuarantineReason::kNotPositive, QuarantineReason::kMalformed,
      QuarantineReason::kNotPositive, QuarantineReason::kMalformed};
  for (std::uint32_t i = 0; i < 5; ++i) {
    EXPECT_EQ(table.quarantined[i].reason, kExpected[i]) << i;
    EXPECT_EQ(table.quarantined[i].line, i + 2);
  }
}

TEST(ReadTable, AByteOrderMarkIsPassedOverAndAColumnGivenTwiceRefused) {
  const std::string row = "gemm,lib,bfloat16,1,128,256,0.01\n";
  EXPECT_EQ(io::parse_table("\xEF\xBB\xBF" + (kHeader + row), kName).series.size(), 1U);
  try {
    io::parse_table("op_name,kernel_source,gemm_dtype,m,n,k,latency_ms,m\n" + row, kName);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("two columns \"m\""), std::string::npos);
  }
}

TEST(ReadTable, AWrongFileIsOneClearError) {
  EXPECT_THROW(parse(""), InputError);
  EXPECT_THROW(io::parse_table("a,b\n1,2\n", kName), InputError);
  EXPECT_THROW(io::parse_table("", kName), InputError);
  EXPECT_THROW(io::read_table("/does/not/exist.csv"), InputError);
  try {
    parse("gemm,lib,bfloat16,1,128,256,0.1\n", "mine.csv");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("which device"), std::string::npos);
  }
  io::TableOrigin origin;
  origin.device = "toy";
  EXPECT_EQ(io::parse_table(std::string(kHeader) + "gemm,lib,bfloat16,1,128,256,0.1\n", "mine.csv",
                            origin)
                .device,
            "toy");
}

TEST(Screen, HonestRowsAllStay) {
  const MeasurementTable table = screened(line_of({20, 21, 21, 25, 40, 80, 150}));
  EXPECT_TRUE(table.quarantined.empty());
  EXPECT_EQ(table.series[0].records.size(), 7U);
}

TEST(Screen, ShorterThanALaunchOrFasterThanThePeakIsSetAside) {
  // 4096^2 x 64 x 2 flop at 1e15 flop/s is 2.15 us; m = 64 at 2.0 us is above physics.
  const MeasurementTable table = screened(line_of({0.9, 20, 21, 21, 21, 22, 2.0}));
  ASSERT_EQ(table.quarantined.size(), 2U);
  EXPECT_EQ(table.quarantined[0].reason, QuarantineReason::kBelowLaunchFloor);
  EXPECT_EQ(table.quarantined[1].reason, QuarantineReason::kAbovePhysics);
  EXPECT_EQ(table.quarantined[1].line, 8U);
  // Just above the bound it stays.
  EXPECT_EQ(screened(line_of({20, 20, 20, 20, 20, 12, 11})).quarantined.size(), 0U);
}

TEST(Screen, OnePointFarOffItsNeighboursIsSetAsideAndNotItsNeighbours) {
  const auto dip = screened(line_of({100, 100, 45, 110, 120}));
  ASSERT_EQ(dip.quarantined.size(), 1U);
  EXPECT_EQ(dip.quarantined[0].reason, QuarantineReason::kNonMonotone);
  EXPECT_EQ(dip.quarantined[0].line, 4U);
  // Four microseconds become 23: by what a host launch costs.
  const auto eager = screened(line_of({4, 23, 5, 6}));
  ASSERT_EQ(eager.quarantined.size(), 1U);
  EXPECT_EQ(eager.quarantined[0].reason, QuarantineReason::kEagerLaunch);
  const auto thousand = screened(line_of({20, 21, 22000, 23, 24}));
  ASSERT_EQ(thousand.quarantined.size(), 1U);
  EXPECT_EQ(thousand.quarantined[0].reason, QuarantineReason::kWrongUnits);
  // A factor just below two is noise, and the loss function's business.
  EXPECT_TRUE(screened(line_of({20, 21, 43, 22, 24})).quarantined.empty());
}

TEST(Screen, APartOfATableInAnotherUnitIsSetAsideAndTheRestStays) {
  for (const std::vector<double>& times :
       {std::vector<double>{20, 21000, 21, 22000, 23, 24000, 40},     // every other row
        std::vector<double>{20, 21, 22, 23, 25000, 26000, 40000}}) {  // from some size up
    const auto table = screened(line_of(times));
    ASSERT_EQ(table.quarantined.size(), 3U);
    for (const QuarantinedRow& row : table.quarantined) {
      EXPECT_EQ(row.reason, QuarantineReason::kWrongUnits);
    }
    EXPECT_EQ(table.series[0].records.size(), 4U);
  }
}

/// tokens, experts' width and time of one row of an autotuned MoE kernel.
std::string moe_line(const char* source, int tokens, int inter, double microseconds) {
  return "moe," + std::string(source) + ",fp8," + std::to_string(tokens) + ",2048," +
         std::to_string(inter) + ",8,128,1,1,balanced," + std::to_string(microseconds * 1e-3) +
         "\n";
}

TEST(Screen, AnAutotunedKernelSlowerThanWithMoreWorkIsASlowTactic) {
  const auto screened_moe = [](const char* source) {
    // At 8 tokens the wider expert takes 100 us: 190 for the narrow one is noise, 210 is a failure.
    MeasurementTable table = io::parse_table(
        "op_name,kernel_source,moe_dtype,num_tokens,hidden_size,inter_size,topk,num_experts,"
        "moe_tp_size,moe_ep_size,distribution,latency_ms\n" +
            moe_line(source, 8, 1024, 100) + moe_line(source, 16, 1024, 160) +
            moe_line(source, 4, 512, 190) + moe_line(source, 8, 512, 210) +
            moe_line(source, 32, 512, 420),  // nothing with more work: no witness
        "toy__moe__trtllm__1__moe_perf.csv");
    screen(table, toy::device());
    return table;
  };
  const auto tuned = screened_moe("moe_torch_flow_cutlass");
  ASSERT_EQ(tuned.quarantined.size(), 1U);
  EXPECT_EQ(tuned.quarantined[0].reason, QuarantineReason::kSlowTactic);
  EXPECT_EQ(tuned.quarantined[0].line, 5U);
  // A kernel that nobody tunes may have its reasons.
  EXPECT_TRUE(screened_moe("sglang_fused_moe_triton").quarantined.empty());
}

TEST(Screen, RepeatsThatAgreeKeepOneAndRepeatsThatDoNotKeepNone) {
  const std::string row = "gemm,lib,bfloat16,1,128,256,";
  const auto agree = screened(row + "0.010\n" + row + "0.0101\n");
  EXPECT_EQ(agree.series[0].records.size(), 1U);
  EXPECT_EQ(agree.quarantined[0].reason, QuarantineReason::kDuplicate);
  const auto disagree =
      screened(row + "0.010\n" + row + "0.020\ngemm,lib,bfloat16,2,128,256,0.01\n");
  EXPECT_EQ(disagree.series[0].records.size(), 1U);
  ASSERT_EQ(disagree.quarantined.size(), 2U);
  EXPECT_EQ(disagree.quarantined[0].reason, QuarantineReason::kDisagreeingDuplicate);
}

TEST(Screen, ATableInTheWrongUnitIsRefused) {
  EXPECT_THROW(screened(line_of({20e3, 21e3, 21e3, 25e3, 40e3})), InputError);  // us as ms
  EXPECT_THROW(screened(line_of({20e-3, 21e-3, 21e-3, 25e-3})), InputError);    // s as ms
}

TEST(Screen, ATableWithoutOneUsableRowIsRefused) {
  EXPECT_THROW(screened("gemm,lib,bfloat16,1,128,256,nan\n"), InputError);
}

TEST(Screen, ADamagedTableIsReadOrRefusedWithAnInputError) {
  const std::string whole = kHeader + line_of({20, 21, 21, 25, 40, 80, 150});
  Random random(1);
  int read = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    std::string text = whole;
    for (int damage = 0; damage < 1 + trial % 4; ++damage) {
      const auto at = static_cast<std::size_t>(random.uniform() * static_cast<double>(text.size()));
      if (trial % 3 == 0) {
        text.resize(at);
      } else {
        text[at] = static_cast<char>(random.next() & 0x7F);
      }
      if (text.empty()) break;
    }
    try {
      MeasurementTable table = io::parse_table(text, kName);
      screen(table, toy::device());
      std::size_t used = 0;
      for (const Series& series : table.series) used += series.records.size();
      EXPECT_EQ(used + table.quarantined.size(), table.num_rows);  // no row is lost in silence
      ++read;
    } catch (const InputError&) {
    }
  }
  EXPECT_GT(read, 300);
}

}  // namespace
}  // namespace fulcrum::calibrate
