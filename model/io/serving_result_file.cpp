#include "model/io/serving_result_file.h"

#include "model/io/import/byte_source.h"
#include "model/io/import/import_json.h"
#include "model/io/import/serving_formats.h"
#include "model/io/json_reader.h"
#include "model/io/valid_text.h"

namespace fulcrum::io {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr const char* kSchema = "fulcrum/serving-result/1";

ordered_json latency_json(const LatencySummary& latency) {
  ordered_json out = ordered_json::object();
  for (const LatencyStatistic& statistic : kLatencyStatistics) {
    if (latency.*statistic.member) out[statistic.key] = *(latency.*statistic.member);
  }
  return out;
}

ordered_json result_json(const ServingResult& result) {
  ordered_json out = ordered_json::object();
  for (const ServingText& text : kServingTexts) {
    if (!(result.*text.member).empty()) out[text.key] = result.*text.member;
  }
  for (const ServingNumber& number : kServingNumbers) {
    if (result.*number.member) out[number.key] = *(result.*number.member);
  }
  if (!result.accepted_fraction_at_position.empty()) {
    out["accepted_fraction_at_position"] = result.accepted_fraction_at_position;
  }
  for (const ServingLatency& latency : kServingLatencies) {
    if (!(result.*latency.member).empty()) {
      out[latency.key] = latency_json(result.*latency.member);
    }
  }
  return out;
}

ServingResult parse_result(JsonObject& object) {
  ServingResult result;
  for (const ServingText& text : kServingTexts) {
    result.*text.member = object.string_or(text.key, "");
  }
  for (const ServingNumber& number : kServingNumbers) {
    result.*number.member = object.optional_number(number.key, kNonNegative);
  }
  result.accepted_fraction_at_position =
      object.numbers_or("accepted_fraction_at_position", kFraction, {});
  for (const ServingLatency& latency : kServingLatencies) {
    object.optional_object(latency.key, [&](JsonObject& values) {
      for (const LatencyStatistic& statistic : kLatencyStatistics) {
        (result.*latency.member).*statistic.member =
            values.optional_number(statistic.key, kNonNegative);
      }
    });
  }
  return result;
}

}  // namespace

ordered_json serving_results_json(const std::vector<ServingResult>& results,
                                  const std::string& source) {
  ordered_json list = ordered_json::array();
  for (const ServingResult& result : results) list.push_back(result_json(result));
  return {{"schema", kSchema}, {"source", valid_utf8(source)}, {"results", std::move(list)}};
}

std::vector<ServingResult> parse_serving_results(const json& document, const std::string& file) {
  std::vector<InputProblem> problems;
  std::vector<ServingResult> results;
  JsonObject root(document, file, "", problems);
  root.schema(kSchema);
  root.string_or("source", "");
  root.objects("results", [&](JsonObject& object) { results.push_back(parse_result(object)); });
  root.reject_unknown();
  throw_if_any(problems);
  return results;
}

std::vector<ServingResult> read_serving_results(const std::string& path) {
  ByteSource source = ByteSource::from_file(path);
  const std::vector<ImportedDocument> documents = parse_import_json(source);
  if (documents.size() == 1 && documents[0].value.is_object() &&
      documents[0].value.contains("schema")) {
    return parse_serving_results(read_json_file(path), path);
  }
  return import_serving_results(documents, path);
}

}  // namespace fulcrum::io
