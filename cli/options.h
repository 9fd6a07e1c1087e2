// Command-line parsing shared by the subcommands: Boost.Program_options with the project's errors.
#pragma once

#include <boost/program_options.hpp>
#include <string>
#include <vector>

#include "cli/command.h"

namespace fulcrum::cli {

struct HelpText {
  std::string usage;        ///< "fulcrum predict [SCENARIO] [OPTIONS]"
  std::string description;  ///< one paragraph
  std::string example;      ///< a command and what it shows
};

/// Parses; `positional` names options that take positional arguments, the last one repeatedly.
/// Prints help and returns false when --help was given. Throws InputError on misuse.
bool parse(const Arguments& arguments, const HelpText& help,
           const boost::program_options::options_description& options,
           const std::vector<std::string>& positional,
           boost::program_options::variables_map& values);

/// "1,8,16" -> numbers. Throws InputError naming `option`.
std::vector<double> parse_numbers(const std::string& text, const std::string& option, double lower,
                                  double upper);

}  // namespace fulcrum::cli
