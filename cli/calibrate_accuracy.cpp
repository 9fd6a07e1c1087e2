// The accuracy table of the shipped calibrations, as Markdown for README.md.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/calibration.h"
#include "calibrate/io/calibration_file.h"
#include "cli/calibrate_options.h"
#include "model/io/data_dir.h"

namespace fulcrum::cli {
namespace {

/// The project's bars: medians and 90 % quantiles of the absolute error.
struct Bar {
  double median_ape;
  double p90_ape;
};
constexpr Bar kInside{0.03, 0.10};
constexpr Bar kOutside{0.08, 0.25};

std::string one_decimal(double fraction) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", 100.0 * fraction);
  return text;
}

/// Median / p90; what misses its bar is bold.
std::string cell(const std::optional<calibrate::ErrorStatistics>& errors, const Bar& bar) {
  if (!errors) return "-";
  const auto mark = [](double value, double most) {
    return value > most ? "**" + one_decimal(value) + "**" : one_decimal(value);
  };
  return mark(errors->median_ape, bar.median_ape) + " / " + mark(errors->p90_ape, bar.p90_ape);
}

void count(const std::optional<calibrate::ErrorStatistics>& errors, const Bar& bar, int& met,
           int& all) {
  if (!errors) return;
  ++all;
  if (errors->median_ape <= bar.median_ape && errors->p90_ape <= bar.p90_ape) ++met;
}

}  // namespace

int calibrate_accuracy() {
  namespace fs = std::filesystem;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(fs::path(io::data_dir()) / "calibration")) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  int met_inside = 0;
  int all_inside = 0;
  int met_outside = 0;
  int all_outside = 0;
  std::cout << "| GPU | series | rows | held-out shapes, median / p90 % | by the law alone | "
               "beyond the range | 90 % interval covers % |\n|---|---|---|---|---|---|---|\n";
  for (const fs::path& file : files) {
    const calibrate::Calibration calibration = calibrate::io::read_calibration(file.string());
    for (const calibrate::SeriesFit& fit : calibration.series) {
      count(fit.inside, kInside, met_inside, all_inside);
      count(fit.outside, kOutside, met_outside, all_outside);
      std::cout << "| " << calibration.hardware << " | " << calibrate::series_id(fit.key) << " | "
                << fit.num_rows << " | " << cell(fit.inside, kInside) << " | "
                << cell(fit.inside_law ? fit.inside_law : fit.inside, kInside) << " | "
                << cell(fit.outside, kOutside) << " | "
                << (fit.inside ? one_decimal(fit.inside->coverage_fraction) : "-") << " |\n";
    }
  }
  std::cout << "\nBars: 3 / 10 % on held-out shapes, met by " << met_inside << " of " << all_inside
            << " series; 8 / 25 % beyond the range, met by " << met_outside << " of " << all_outside
            << ". What misses is bold.\n";
  return 0;
}

}  // namespace fulcrum::cli
