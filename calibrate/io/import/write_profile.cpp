#include "calibrate/io/import/write_profile.h"

#include "model/io/valid_text.h"

namespace fulcrum::calibrate::io {
namespace {

using fulcrum::io::valid_utf8;
using nlohmann::ordered_json;

ordered_json device_json(const StepProfile& p) {
  ordered_json ops = ordered_json::array();
  for (const OpTotal& total : totals_by_op(p.lines)) {
    ops.push_back({{"op", total.op},
                   {"family", total.op == "unknown" ? "unknown" : name_of(total.family)},
                   {"launches", total.launches},
                   {"busy_seconds", total.busy_seconds},
                   {"exposed_seconds", total.exposed_seconds}});
  }
  ordered_json kernels = ordered_json::array();
  for (const ProfileLine& line : p.lines) {
    kernels.push_back({{"kernel", valid_utf8(line.kernel)},
                       {"op", line.op},
                       {"launches", line.launches},
                       {"busy_seconds", line.busy_seconds},
                       {"exposed_seconds", line.exposed_seconds},
                       {"launch_median_seconds", line.launch_median_seconds}});
  }
  ordered_json out = {
      {"device", valid_utf8(p.device)},          {"num_steps", p.num_steps},
      {"num_other_steps", p.num_other_steps},    {"anchor", valid_utf8(p.search.anchor)},
      {"anchor_stride", p.search.anchor_stride}, {"regularity_fraction", p.search.regularity},
      {"busy_sum_seconds", p.busy_sum_seconds},  {"mapped_fraction", p.mapped_fraction}};
  if (p.timed) {
    out["step_seconds"] = p.step_seconds;
    out["step_p05_seconds"] = p.step_p05_seconds;
    out["step_p95_seconds"] = p.step_p95_seconds;
    out["busy_union_seconds"] = p.busy_union_seconds;
    out["idle_seconds"] = p.idle_seconds;
    out["idle_in_graph_seconds"] = p.idle_in_graph_seconds;
    out["graph_fraction"] = p.graph_fraction;
  }
  out["ops"] = std::move(ops);
  out["kernels"] = std::move(kernels);
  return out;
}

}  // namespace

ordered_json profiles_json(const std::vector<StepProfile>& profiles, const std::string& source,
                           const std::string& rules, const std::vector<std::string>& notes) {
  ordered_json devices = ordered_json::array();
  for (const StepProfile& profile : profiles) devices.push_back(device_json(profile));
  return {{"schema", "fulcrum/profile/1"},
          {"source", valid_utf8(source)},
          {"rules", rules},
          {"notes", notes},
          {"devices", std::move(devices)}};
}

}  // namespace fulcrum::calibrate::io
