// What the modes of `fulcrum calibrate` share: reading tables, the device they belong to.
#pragma once

#include <boost/program_options.hpp>
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

// The modes; each returns the exit status.
int calibrate_score(const std::vector<TablesOfDevice>& devices,
                    const boost::program_options::variables_map& values);
int calibrate_few_shot(const std::vector<TablesOfDevice>& devices,
                       const boost::program_options::variables_map& values);
int calibrate_transfer(const std::vector<TablesOfDevice>& devices,
                       const boost::program_options::variables_map& values);
int calibrate_advise(const std::vector<TablesOfDevice>& devices,
                     const boost::program_options::variables_map& values);

/// "2.1 %" with one decimal; "-" where absent.
std::string percent(const std::optional<double>& fraction);

}  // namespace fulcrum::cli
