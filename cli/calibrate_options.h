// What the modes of `fulcrum calibrate` share: reading tables, the device they belong to.
#pragma once

#include <boost/program_options.hpp>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/calibration.h"
#include "calibrate/measurement_table.h"
#include "model/hardware.h"

namespace fulcrum::cli {

/// Screened tables of one device.
struct TablesOfDevice {
  Hardware hardware;
  LawDevice device;
  std::vector<calibrate::MeasurementTable> tables;
};

/// Reads and screens the tables, grouped by device in order of appearance. Throws InputError.
std::vector<TablesOfDevice> read_tables(const std::vector<std::string>& files,
                                        const boost::program_options::variables_map& values);

/// The hardware file's name for a table's device: "h200_sxm" -> "h200-sxm".
std::string hardware_name(std::string device);

/// One line per table on stderr: rows, used, quarantined by reason; with --verbose each row.
void print_quarantine(const calibrate::MeasurementTable& table, bool verbose);

/// A calibration and the device it was measured on.
struct CalibrationOfDevice {
  calibrate::Calibration calibration;
  Hardware hardware;
  LawDevice device;
};

/// The file named by --calibration, else every shipped one (data/calibration/*.json).
std::vector<CalibrationOfDevice> read_calibrations(
    const boost::program_options::variables_map& values);

/// Errors per series, printed as a table or as JSON of the given schema.
struct ScoredSeries {
  std::string id;
  std::string kernel_source;
  std::size_t num_fitted = 0;  ///< rows the fit has seen, 0 where it saw none
  calibrate::ErrorStatistics errors;
};
void print_scores(const std::vector<ScoredSeries>& scores, const std::string& schema, bool json);

// The modes; each returns the exit status.
int calibrate_score(const std::vector<TablesOfDevice>& devices,
                    const boost::program_options::variables_map& values);
int calibrate_few_shot(const std::vector<TablesOfDevice>& devices,
                       const boost::program_options::variables_map& values);
int calibrate_transfer(const std::vector<TablesOfDevice>& devices,
                       const boost::program_options::variables_map& values);
int calibrate_advise(const std::vector<TablesOfDevice>& devices,
                     const boost::program_options::variables_map& values);

/// Prints the held-out errors of the shipped calibrations as a Markdown table.
int calibrate_accuracy();

/// "2.1 %" with one decimal; "-" where absent.
std::string percent(const std::optional<double>& fraction);

}  // namespace fulcrum::cli
