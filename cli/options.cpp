#include "cli/options.h"

#include <cmath>
#include <cstdlib>
#include <iostream>
#include <sstream>

#include "model/errors.h"

namespace fulcrum::cli {

namespace po = boost::program_options;

bool parse(const Arguments& arguments, const HelpText& help, const po::options_description& options,
           const std::vector<std::string>& positional, po::variables_map& values) {
  po::options_description all(options);
  all.add_options()("help,h", "show this help");
  po::positional_options_description places;
  for (std::size_t i = 0; i < positional.size(); ++i) {
    places.add(positional[i].c_str(), i + 1 == positional.size() ? -1 : 1);
  }
  try {
    po::store(
        po::command_line_parser(arguments)
            .options(all)
            .positional(places)
            .style(po::command_line_style::unix_style & ~po::command_line_style::allow_guessing)
            .run(),
        values);
    if (values.count("help") != 0) {
      std::ostringstream listed;
      listed << all;
      const char* title = listed.str().starts_with("options:") ? "" : "options:\n";
      std::cout << "usage: " << help.usage << "\n\n"
                << help.description << "\n\n"
                << title << listed.str() << "\nexample:\n"
                << help.example << '\n';
      return false;
    }
    po::notify(values);
  } catch (const po::error& error) {
    throw InputError({"command line", "", error.what(), "see --help"});
  }
  return true;
}

std::vector<double> parse_numbers(const std::string& text, const std::string& option, double lower,
                                  double upper) {
  std::vector<double> numbers;
  std::stringstream parts(text);
  std::string part;
  while (std::getline(parts, part, ',')) {
    char* end = nullptr;
    const double value = std::strtod(part.c_str(), &end);
    if (part.empty() || *end != '\0' || !std::isfinite(value) || value < lower || value > upper) {
      std::ostringstream allowed;
      allowed << "numbers from " << lower << " to " << upper << ", comma separated";
      throw InputError({"command line", option, "is \"" + text + "\"", allowed.str()});
    }
    numbers.push_back(value);
  }
  if (numbers.empty()) {
    throw InputError({"command line", option, "is empty", "e.g. 1,8,16"});
  }
  return numbers;
}

}  // namespace fulcrum::cli
