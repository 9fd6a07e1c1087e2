#include "cli/sweep_output.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>

namespace fulcrum::cli {
namespace {

void append_number(std::string& out, double value) {
  char text[32];
  // Shortest for a whole number can be 1e+05, which reads badly as a count.
  constexpr double kCount = 1e15;
  if (value == std::floor(value) && std::abs(value) < kCount) {
    const auto end = std::to_chars(text, text + sizeof text, static_cast<std::int64_t>(value)).ptr;
    out.append(text, end);
    return;
  }
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  out.append(text, end);
}

void append_row(std::string& out, const SweepPoint& point, const SweepRow& row, bool json) {
  append_number(out, point.concurrency);
  for (double value : {point.input_tokens, point.output_tokens, row.effective_batch}) {
    out += ',';
    append_number(out, value);
  }
  out += json ? ",\"" : ",";
  out += name_of(row.batch_limiter);
  if (json) out += '"';
  const Interval& tpot = row.tpot_seconds;
  const Interval& rate = row.output_tokens_per_second;
  const double values[] = {row.accept_length,
                           row.step_seconds.p05,
                           row.step_seconds.p50,
                           row.step_seconds.p95,
                           tpot.p05,
                           tpot.p50,
                           tpot.p95,
                           row.ttft_seconds.p50,
                           rate.p05,
                           rate.p50,
                           rate.p95};
  for (double value : values) {
    out += ',';
    if (row.effective_batch > 0.0) {
      append_number(out, value);
    } else if (json) {
      out += "null";
    }
  }
}

}  // namespace

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

std::vector<std::string> sweep_columns(const io::SweepPlan& plan) {
  std::vector<std::string> columns{"point"};
  for (const io::SweepAxis& axis : plan.settings) columns.push_back(axis.path);
  for (const char* name : {"concurrency", "input_tokens", "output_tokens", "effective_batch",
                           "batch_limiter", "accept_length", "step_seconds_p05", "step_seconds_p50",
                           "step_seconds_p95", "tpot_seconds_p05", "tpot_seconds_p50",
                           "tpot_seconds_p95", "ttft_seconds_p50", "output_tokens_per_second_p05",
                           "output_tokens_per_second_p50", "output_tokens_per_second_p95"}) {
    columns.emplace_back(name);
  }
  return columns;
}

std::string sweep_lines(const io::SweepBlock& block, bool json, int num_threads) {
  std::string settings;
  for (const nlohmann::json& value : block.settings) {
    settings += json                ? value.dump()
                : value.is_string() ? csv_field(value.get<std::string>())
                                    : csv_field(value.dump());
    settings += ',';
  }
  std::vector<std::string> parts(static_cast<std::size_t>(std::max(1, num_threads)));
  for_parts(block.points.size(), num_threads,
            [&](std::size_t part, std::size_t begin, std::size_t end) {
              std::string& out = parts[part];
              constexpr std::size_t kTypicalLine = 256;
              out.reserve((end - begin) * kTypicalLine);
              for (std::size_t i = begin; i < end; ++i) {
                if (json) out += '[';
                append_number(out, static_cast<double>(block.first + i));
                out += ',';
                out += settings;
                append_row(out, block.points[i], block.rows[i], json);
                out += json ? "],\n" : "\n";
              }
            });
  std::string text = std::move(parts[0]);
  for (std::size_t i = 1; i < parts.size(); ++i) text += parts[i];
  return text;
}

}  // namespace fulcrum::cli
