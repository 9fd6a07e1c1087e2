// Parts of `fulcrum import`, one per kind of thing imported.
#pragma once

#include <boost/program_options.hpp>
#include <string>
#include <vector>

#include "calibrate/io/import/imported_table.h"
#include "calibrate/trace/profile.h"
#include "model/io/import/byte_source.h"

namespace fulcrum::cli {

/// A file with progress on stderr where it is large and stderr is a terminal.
io::ByteSource open_import(const std::string& file,
                           const boost::program_options::variables_map& values);

/// Profiles of traces (one per file and device): prints, compares with --scenario, writes.
int show_profiles(const std::vector<calibrate::StepProfile>& profiles, const std::string& source,
                  const std::string& rules, const std::vector<std::string>& notes,
                  const boost::program_options::variables_map& values);

/// Kernel tables: writes each as CSV (--output names the folder) and says what to do with it.
int show_tables(const std::vector<calibrate::io::ImportedTable>& tables, const std::string& source,
                const boost::program_options::variables_map& values);

/// Writes each as CSV into a folder, made where missing; notes go to stderr.
void write_table_files(const std::vector<calibrate::io::ImportedTable>& tables,
                       const std::string& folder);

/// Reads one file as a trace or a table of totals; returns profiles of all its devices.
std::vector<calibrate::StepProfile> read_profiles(
    const std::string& file, int container, const calibrate::TraceRules& rules,
    const boost::program_options::variables_map& values, std::vector<std::string>& notes);

}  // namespace fulcrum::cli
