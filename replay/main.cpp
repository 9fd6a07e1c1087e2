// A thin program for carrying to a GPU machine: only `replay`.
#include "replay/command.h"

int main(int argc, char** argv) { return fulcrum::replay::run_replay_command(argc, argv); }
