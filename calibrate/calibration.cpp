#include "calibrate/calibration.h"

#include <algorithm>
#include <map>

namespace fulcrum::calibrate {

std::string series_id(const SeriesKey& key) {
  std::string id = key.table + "/" + key.engine + "-" + key.engine_version;
  for (const std::string* part : {&key.op_name, &key.kernel_source, &key.dtype}) {
    if (!part->empty()) id += "/" + *part;
  }
  return id;
}

std::vector<FitTask> collect_tasks(std::span<const MeasurementTable> tables,
                                   std::vector<std::string>& unexplained) {
  std::map<SeriesKey, FitTask> tasks;
  for (const MeasurementTable& table : tables) {
    for (const Series& series : table.series) {
      const Family* family = find_family(series.key);
      if (family == nullptr) {
        unexplained.push_back(to_string(series.key));
        continue;
      }
      const SeriesKey key = family->pooled != nullptr ? family->pooled(series.key) : series.key;
      FitTask& task = tasks[key];
      task.family = family;
      task.key = key;
      task.records.insert(task.records.end(), series.records.begin(), series.records.end());
    }
  }
  std::vector<FitTask> sorted;
  for (auto& [key, task] : tasks) sorted.push_back(std::move(task));
  return sorted;
}

TableProvenance provenance_of(const MeasurementTable& table) {
  TableProvenance provenance;
  provenance.file = table.file.substr(table.file.find_last_of('/') + 1);
  provenance.sha256 = table.sha256;
  provenance.num_rows = table.num_rows;
  provenance.num_quarantined = count_reasons(table);
  for (const Series& series : table.series) {
    provenance.num_used += static_cast<std::uint32_t>(series.records.size());
  }
  return provenance;
}

std::vector<SeriesFit> fit_all(std::span<const FitTask> tasks, const LawDevice& device,
                               const FitOptions& options,
                               const std::function<void(const FitTask&)>& progress) {
  std::vector<SeriesFit> fits;
  for (const FitTask& task : tasks) {
    if (progress) progress(task);
    fits.push_back(fit_series(*task.family, task.key, device, task.records, options));
  }
  std::stable_sort(fits.begin(), fits.end(), [](const SeriesFit& a, const SeriesFit& b) {
    return series_id(a.key) < series_id(b.key);
  });
  return fits;
}

const SeriesFit* find_series(const Calibration& calibration, const SeriesKey& key) {
  const std::string id = series_id(key);
  for (const SeriesFit& fit : calibration.series) {
    if (series_id(fit.key) == id) return &fit;
  }
  return nullptr;
}

}  // namespace fulcrum::calibrate
