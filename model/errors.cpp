#include "model/errors.h"

#include <utility>

namespace fulcrum {

std::string describe(const std::vector<InputProblem>& problems) {
  constexpr std::size_t kMostShown = 20;
  std::string text;
  for (std::size_t i = 0; i < problems.size(); ++i) {
    const InputProblem& problem = problems[i];
    if (!text.empty()) text += '\n';
    if (i == kMostShown) {
      return text + "... and " + std::to_string(problems.size() - kMostShown) + " more";
    }
    if (!problem.file.empty()) text += problem.file + ": ";
    if (!problem.pointer.empty()) text += problem.pointer + ": ";
    text += problem.message;
    if (!problem.allowed.empty()) text += " (allowed: " + problem.allowed + ")";
  }
  return text;
}

InputError::InputError(std::vector<InputProblem> problems)
    : std::runtime_error(describe(problems)), problems_(std::move(problems)) {}

InputError::InputError(InputProblem problem)
    : InputError(std::vector<InputProblem>{std::move(problem)}) {}

}  // namespace fulcrum
