// Input errors: one exception that carries every problem of a file, each with its place.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace fulcrum {

/// One thing wrong with an input. Empty strings are left out of the message.
struct InputProblem {
  std::string file;     ///< path as the user gave it, or "command line"
  std::string pointer;  ///< JSON pointer (RFC 6901), "line 12", or an option name
  std::string message;  ///< what is wrong, with the value found
  std::string allowed;  ///< what would be accepted
};

/// Thrown for bad input or usage; the command line prints it and exits with 2.
class InputError : public std::runtime_error {
 public:
  explicit InputError(std::vector<InputProblem> problems);
  explicit InputError(InputProblem problem);
  const std::vector<InputProblem>& problems() const { return problems_; }

 private:
  std::vector<InputProblem> problems_;
};

/// "file: /pointer: message (allowed: ...)", one line per problem.
std::string describe(const std::vector<InputProblem>& problems);

}  // namespace fulcrum
