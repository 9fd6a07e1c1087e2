#include "replay/step/step_command.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <exception>
#include <memory>
#include <mutex>
#include <string>

#include "kernels/common/check.h"
#include "model/io/data_dir.h"
#include "model/io/load_model.h"
#include "replay/build_info.h"
#include "replay/collectives/communicator.h"
#include "replay/io/step_record.h"
#include "replay/step/runner.h"
#include "replay/step/step_options.h"
#include "replay/worker.h"

namespace fulcrum::replay {
namespace {

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

/// Everything the ranks of one run share. Lines are written by one rank.
class Recorder {
 public:
  Recorder(const StepOptions& options, int argc, char** argv) {
    session_ = describe_device();
    session_.argv.assign(argv, argv + argc);
    session_.git_sha = FULCRUM_GIT_SHA;
    session_.started_at = utc_now();
    session_.id = session_.started_at + "-" + std::to_string(getpid());
    if (!options.out_path.empty()) {
      file_ = std::make_unique<MeasurementFile>(options.out_path);
      file_->write(session_to_line(session_));
    }
    std::fprintf(stderr, "%s, driver %s\n", session_.device_name.c_str(),
                 session_.driver_version.c_str());
  }
  const Session& session() const { return session_; }
  void write(const std::string& line) {
    if (file_) file_->write(line);
  }

 private:
  Session session_;
  std::unique_ptr<MeasurementFile> file_;
};

CacheLimits limits_of(const StepOptions& options) {
  return {.max_requests = *std::ranges::max_element(options.batches),
          .max_drafts = *std::ranges::max_element(options.drafts),
          .max_context = *std::ranges::max_element(options.contexts)};
}

bool reads_context(OpId id) {
  return id == OpId::kAttentionCsa || id == OpId::kAttentionHca || id == OpId::kIndexerLogits ||
         id == OpId::kIndexerTopK;
}

/// Every op alone: those that read the context at every context, the others once a batch.
void measure_alone(StepRank& rank, const StepOptions& options, StepPlace place,
                   const ModelConfig& model, const Nvml& nvml, Recorder& recorder) {
  const int num_drafts = *std::ranges::max_element(options.drafts);
  const StepGraph graph = reference_graph(model, place.tensor_parallel, std::max(1, num_drafts));
  const std::vector<ScheduledOp> schedule = schedule_step(graph);
  for (const StepCell& cell : options.cells()) {
    // One step first: inputs are then what a step leaves, and rings have settled.
    rank.configure(cell);
    enqueue_step(rank, schedule_step(reference_graph(model, place.tensor_parallel, cell.drafts)),
                 nullptr, nullptr);
    FULCRUM_CUDA_CHECK(cudaDeviceSynchronize());
    double sum_seconds = 0.0;
    for (int i = 0; i < kNumOpIds; ++i) {
      const auto id = static_cast<OpId>(i);
      if (!reads_context(id) && cell.context != options.contexts.front()) continue;
      const auto alone = measure_op(rank, schedule, id, cell, recorder.session().l2_bytes, nvml);
      if (!alone) continue;
      recorder.write(op_alone_to_line(place, cell, *alone));
      sum_seconds += alone->executions * alone->seconds();
    }
    std::fprintf(stderr, "alone TP%d batch %d context %d drafts %d: sum %.3f ms\n",
                 place.tensor_parallel, cell.requests, cell.context, cell.drafts,
                 1e3 * sum_seconds);
  }
}

/// All cells of the grid on one rank. `writes`: this rank records. Returns failed cells.
int measure_cells(StepRank& rank, const StepOptions& options, const StepPlace& place,
                  const ModelConfig& model, const Nvml& nvml, Recorder& recorder, bool writes) {
  RunOptions run{
      .side_streams = options.side_streams, .eager = options.eager, .per_op = options.per_op};
  if (place.num_gpus > 1) {
    // Ranks meet in every launch, so all must launch equally often.
    run.stopping.min_samples = run.stopping.max_samples = 21;
    run.stopping.max_total_seconds = 1e9;
  }
  int failed = 0;
  for (const StepCell& cell : options.cells()) {
    const StepGraph graph = reference_graph(model, place.tensor_parallel, cell.drafts);
    const StepMeasurement step = measure_step(rank, schedule_step(graph), cell, run, nvml);
    if (!writes) continue;
    recorder.write(step_to_line(place, cell, graph, step));
    const bool good = step.not_finite.empty() && step.eager_equals_graph;
    if (!good) ++failed;
    std::fprintf(stderr,
                 "TP%d batch %3d context %6d drafts %d: graph %8.3f ms, eager %8.3f ms%s%s%s\n",
                 place.tensor_parallel, cell.requests, cell.context, cell.drafts,
                 1e3 * step.graph.summary.median_seconds,
                 step.eager ? 1e3 * step.eager->summary.median_seconds : 0.0,
                 step.eager_equals_graph ? "" : ", EAGER AND GRAPH DIFFER",
                 step.not_finite.empty() ? "" : ", NOT FINITE: ", step.not_finite.c_str());
  }
  return failed;
}

std::unique_ptr<StepRank> make_rank(const StepOptions& options, const StepPlace& place,
                                    const ModelConfig& model, const Session& session, int rank) {
  const auto begin = std::chrono::steady_clock::now();
  // A graph with drafts, so that the draft layer has weights.
  const StepGraph graph = reference_graph(model, place.tensor_parallel, 1);
  auto made = std::make_unique<StepRank>(graph, limits_of(options), session.l2_bytes,
                                         options.seed + 7'777'777ULL * static_cast<unsigned>(rank));
  FULCRUM_CUDA_CHECK(cudaDeviceSynchronize());
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::fprintf(stderr, "TP%d rank %d: %.1f GB of weights, %.1f GB of caches, made in %.1f s\n",
               place.tensor_parallel, rank, 1e-9 * made->weight_bytes(), 1e-9 * made->cache_bytes(),
               seconds);
  return made;
}

int run_one_gpu(const StepOptions& options, const ModelConfig& model, Recorder& recorder) {
  const Nvml nvml(pci_bus_id());
  int failed = 0;
  for (const int degree : options.tensor_parallel) {
    const StepPlace place{.session = recorder.session().id,
                          .model = model.name,
                          .tensor_parallel = degree,
                          .num_gpus = 1,
                          .side_streams = options.side_streams};
    const auto rank = make_rank(options, place, model, recorder.session(), 0);
    if (options.action == StepOptions::Action::kAlone) {
      measure_alone(*rank, options, place, model, nvml, recorder);
    } else {
      failed += measure_cells(*rank, options, place, model, nvml, recorder, true);
    }
  }
  return failed;
}

int run_all_ranks(const StepOptions& options, const ModelConfig& model, Recorder& recorder) {
  const StepPlace place{.session = recorder.session().id,
                        .model = model.name,
                        .tensor_parallel = options.num_gpus,
                        .num_gpus = options.num_gpus,
                        .side_streams = options.side_streams};
  std::vector<int> devices;
  for (int i = 0; i < options.num_gpus; ++i) devices.push_back(i);
  int failed = 0;
  collectives::run_threads(devices, [&](collectives::Team& team) {
    const collectives::Communicator comm(team);
    char bus[32] = {};
    FULCRUM_CUDA_CHECK(cudaDeviceGetPCIBusId(bus, sizeof bus, team.device()));
    const Nvml nvml(bus);
    const auto rank = make_rank(options, place, model, recorder.session(), team.rank());
    rank->set_collectives(
        [&](std::uint16_t* data, std::size_t elements, cudaStream_t stream) {
          comm.all_reduce(data, data, elements, collectives::NcclType::kBfloat16, stream);
        },
        [&](const float* in, float* out, std::size_t elements, cudaStream_t stream) {
          comm.all_gather(in, out, elements, collectives::NcclType::kFloat32, stream);
        });
    team.barrier();
    const int mine = measure_cells(*rank, options, place, model, nvml, recorder, team.rank() == 0);
    if (team.rank() == 0) failed = mine;
    team.barrier();
  });
  return failed;
}

}  // namespace

int run_step_command(int argc, char** argv) {
  StepOptions options;
  ModelConfig model;
  try {
    options = parse_step_options(argc, argv);
    if (options.action == StepOptions::Action::kHelp) {
      std::printf("%s", options.help_text.c_str());
      return 0;
    }
    model = io::load_model(io::resolve("models", options.model, "command line", "--model"));
    for (const int degree : options.tensor_parallel) (void)reference_graph(model, degree, 0);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 2;
  }
  try {
    if (options.action == StepOptions::Action::kList) {
      print_schedule(options, model);
      return 0;
    }
    Recorder recorder(options, argc, argv);
    const int failed = options.num_gpus == 1 ? run_one_gpu(options, model, recorder)
                                             : run_all_ranks(options, model, recorder);
    return failed == 0 ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 1;
  }
}

}  // namespace fulcrum::replay
