#include <fmt/format.h>

#include <iostream>

#include "apps/settrain/bench_command.h"
#include "src/core/error.h"
#include "src/core/interrupt.h"
#include "src/core/log.h"
#include "src/core/process.h"
#include "src/inference/score_file.h"
#include "src/measure/bench/loss_report.h"
#include "src/train/compute_policy.h"
#include "src/train/compute_threads.h"

namespace settrain {
namespace {

// `--step` measures a step of CIFAR-100's size.
constexpr int64_t kStepBatch = 128, kStepClasses = 100;

struct LossesBench {
  LossBenchOptions options;
  int64_t threads = 0;  // 0: not given
  std::string model;    // of --step; empty: none
  std::string scores;   // a file for table 5 of --iclr2018; empty: random scores
  bool growth = false, iclr2018 = false, json = false;
};

// The scores of the file, whose classes K must suit; none where there is no file.
std::optional<ScoreBatch> scores_of(const LossesBench& bench) {
  if (bench.scores.empty()) return std::nullopt;
  const SplitScores scores = read_score_file(bench.scores).scores;
  if (bench.options.base.k + 1 >= scores.scores.size(1)) {
    throw ConfigError(fmt::format("--k: {} is too large for the {} classes of {}", bench.options.base.k,
                                  scores.scores.size(1), bench.scores));
  }
  return ScoreBatch{scores.scores, scores.labels};
}

int bench_losses(const CommandLine& line, const LossesBench& bench) {
  LossReport report{.device = find_device(line.device), .options = bench.options, .model = bench.model};
  const LossBenchOptions& options = report.options;
  const LossRegistry& losses = line.registries.losses;
  check(losses, options, report.device);
  const std::optional<ScoreBatch> scores = scores_of(bench);
  if (!bench.model.empty()) line.registries.models.at(bench.model);
  if (bench.threads > 0) set_compute_threads(static_cast<int>(bench.threads));
  if (report.device.is_cpu()) keep_freed_memory();  // as in training
  catch_interrupts();

  warn_without_loss_kernels(report.device);
  log::info("[bench] losses");
  report.losses = measure_losses(losses, options, report.device);
  report.scores = measure_scores(losses, options, report.device);
  report.device_times = measure_device_times(losses, options, report.device);
  if (bench.growth) {
    log::info("[bench] growth");
    report.growth_in_k = measure_growth_in_k(losses, options, report.device);
    report.growth_in_classes = measure_growth_in_classes(losses, options, report.device);
  }
  if (bench.iclr2018) {
    log::info("[bench] the algorithms of ICLR 2018");
    report.smoothed = measure_smoothed(losses, options, report.device);
    report.stability = check_smoothed_stability(losses, options, scores, report.device);
  }
  if (!bench.model.empty()) {
    log::info("[bench] steps of " + bench.model);
    report.steps = measure_step_shares(line.registries, options, bench.model, kStepBatch, kStepClasses, report.device);
  }
  std::cout << (bench.json ? loss_report_json(report) : loss_report_text(report));
  return kSuccess;
}

}  // namespace

void add_bench_losses_command(CLI::App& bench_app, CommandLine& line) {
  const auto [command, bench] = add_subcommand<LossesBench>(
      bench_app, line, "losses", bench_losses,
      "Forward and backward pass of every loss on random scores, alternating with cross-entropy; losses with kernels "
      "also against the same loss by LibTorch's operations");
  LossBenchOptions& options = bench->options;
  options.epsilons = {0.2, 1};
  options.scores_sds = {3, 1, 0.3};
  add_device_option(*command, line);
  add_integer(*command, "--batch", options.base.batch, 1, 1000000, "Rows of scores");
  add_integer(*command, "--classes", options.base.classes, 2, 1000000, "Classes");
  add_integer(*command, "--k", options.base.k, 1, 1000000, "K of the losses that have one");
  add_integer(*command, "--draws", options.base.draws, 1, 1000, "Noise draws of the losses that draw");
  command
      ->add_option("--epsilon", options.epsilons,
                   "Standard deviations of the noise, such as 0.2,1; the first for all losses, the others for those "
                   "with draws, in a table of their own")
      ->delimiter(',')
      ->check(number_between(0, 1e6))
      ->capture_default_str();
  command
      ->add_option("--scores-sd", options.scores_sds,
                   "Standard deviations of the scores, such as 3,1,0.3; the first for all losses, "
                   "those with draws for each of them and each epsilon")
      ->delimiter(',')
      ->check(number_between(0, 1e6))
      ->capture_default_str();
  command
      ->add_option("--losses", options.losses, "Losses to measure beside cross-entropy, such as noised_topk,focal; all")
      ->delimiter(',');
  add_integer(*command, "--rounds", options.turns.rounds, 1, 1000, "Rounds of measuring each");
  add_integer(*command, "--threads", bench->threads, 1, 1024, "Compute threads; LibTorch's choice");
  command->add_flag(
      "--growth", bench->growth,
      "Also noised_topk, smoothed_topk_hinge and exact_topk with K = 1, 5, 10, 50, 100, and with 100, 1000, "
      "10000 classes");
  CLI::Option* iclr2018 =
      command->add_flag("--iclr2018", bench->iclr2018,
                        "Also the smoothed hinge beside the algorithms of its paper, as in tables 3 to 5 there");
  command
      ->add_option("--scores", bench->scores,
                   "Scores of a model for the overflows of table 5, in place of random ones: a file of settrain "
                   "scores, or a safetensors file or .npz archive with scores and labels")
      ->needs(iclr2018);
  command->add_option("--step", bench->model,
                      fmt::format("Also what losses cost of a training step of this model (settrain list models), with "
                                  "batches of {} and {} classes",
                                  kStepBatch, kStepClasses));
  command->add_flag("--json", bench->json, "Prints JSON instead of tables");
}

}  // namespace settrain
