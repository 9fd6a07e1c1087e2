// A subcommand: its name, one line of help, and what runs it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fulcrum::cli {

using Arguments = std::vector<std::string>;

struct Command {
  std::string_view name;
  std::string_view summary;
  int (*run)(const Arguments& arguments);
};

/// All subcommands, in the order help shows them (main.cpp).
std::span<const Command> commands();

int run_predict(const Arguments& arguments);
int run_levers(const Arguments& arguments);
int run_tune_plan(const Arguments& arguments);
int run_explain(const Arguments& arguments);
int run_simulate(const Arguments& arguments);
int run_sweep(const Arguments& arguments);
int run_report(const Arguments& arguments);
int run_check(const Arguments& arguments);
int run_validate(const Arguments& arguments);
int run_replay(const Arguments& arguments);
int run_doctor(const Arguments& arguments);
int run_calibrate(const Arguments& arguments);
int run_import(const Arguments& arguments);

}  // namespace fulcrum::cli
