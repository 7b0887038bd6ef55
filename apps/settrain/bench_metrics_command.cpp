#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "apps/settrain/bench_command.h"
#include "src/config/load.h"
#include "src/core/interrupt.h"
#include "src/core/text.h"
#include "src/measure/bench/speed.h"
#include "src/measure/cost/throughput.h"
#include "src/train/compute_policy.h"
#include "src/train/experiment_schema.h"

namespace settrain {
namespace {

struct MetricsBench {
  MetricSpeedOptions options;
  int64_t rounds = 7, sort_rounds = 3;
  bool json = false;
};

const char* const kKs = "1, 2, 5, 10";

Evaluator make_evaluator(const CommandLine& line, int64_t classes) {
  const config::Config config =
      config::load(experiment_schema(line.registries), "",
                   {fmt::format("eval.top_k=[{}]", kKs), fmt::format("eval.average_k=[{}]", kKs)});
  MetricContext context;
  for (int64_t c = 0; c < classes; ++c) context.train_counts.push_back(c);  // so each shot group has classes
  return Evaluator(line.registries.metrics, config, std::move(context));
}

MetricTimes measure(const MetricSpeed& speed, const MetricsBench& bench) {
  MetricTimes times;
  ProgressBar bar;
  for (int64_t round = 0; round < bench.rounds; ++round) {
    bar.update(round_progress("[bench] rounds", round, bench.rounds, bench.options.samples));
    speed.measure(/*with_sorts=*/round < bench.sort_rounds, times);
  }
  bar.hide();
  return times;
}

// The times of one way to compute something, and of the way that settrain takes.
struct Row {
  const char* name;  // in the table
  const char* key;   // in JSON
  const WorkTimes& times;
  const WorkTimes& ours;
};

std::vector<Row> rows_of(const MetricTimes& times) {
  return {{"average-K thresholds, by selection", "average_k_thresholds", times.thresholds, times.thresholds},
          {"  at::sort of all values", "sort_of_all_values", times.full_sort, times.thresholds},
          {"ranks of the labels, by counting", "label_ranks", times.ranks, times.ranks},
          {"  at::topk of each row", "topk_of_each_row", times.row_topk, times.ranks},
          {"  at::sort of each row", "sort_of_each_row", times.row_sort, times.ranks},
          {"the whole evaluation", "evaluation", times.evaluation, times.evaluation}};
}

std::string as_table(const MetricTimes& times, const MetricsBench& bench, at::Device device) {
  std::string text =
      fmt::format("{} samples of {} classes, float32, K = {}, on {}; {} threads\n", format_count(bench.options.samples),
                  format_count(bench.options.classes), kKs, device.str(), at::get_num_threads());
  text += fmt::format("{:<36} {:>10} {:>12}   {}\n", "", "ms", "times ours", "extra memory");
  for (const Row& row : rows_of(times)) {
    if (row.times.seconds.empty()) continue;
    const bool ours = &row.times == &row.ours;
    text += fmt::format("{:<36} {:>10.2f} {:>12}   {}\n", row.name, 1000 * median(row.times.seconds),
                        ours ? "" : fmt::format("{:.2f}", median(ratios(row.times.seconds, row.ours.seconds))),
                        row.times.extra ? format_memory(*row.times.extra) : "not known");
  }
  text += fmt::format("{:.0f} images/s evaluated; medians of {} rounds",
                      static_cast<double>(bench.options.samples) / median(times.evaluation.seconds), bench.rounds);
  if (bench.sort_rounds > 0) text += fmt::format(", of {} with the sorts", std::min(bench.sort_rounds, bench.rounds));
  return text + "\n";
}

std::string as_json(const MetricTimes& times, const MetricsBench& bench, at::Device device) {
  nlohmann::ordered_json json{
      {"device", device.str()},           {"threads", at::get_num_threads()},     {"samples", bench.options.samples},
      {"classes", bench.options.classes}, {"average_k", bench.options.average_k}, {"rounds", bench.rounds}};
  for (const Row& row : rows_of(times)) {
    if (row.times.seconds.empty()) continue;
    nlohmann::ordered_json& of_row = json[row.key];
    for (const double seconds : row.times.seconds) of_row["ms"].push_back(1000 * seconds);
    if (&row.times != &row.ours) of_row["ratios"] = ratios(row.times.seconds, row.ours.seconds);
    if (row.times.extra)
      of_row["extra_memory_bytes"] = {{"host", row.times.extra->host}, {"device", row.times.extra->device}};
  }
  json["images_per_second"] = static_cast<double>(bench.options.samples) / median(times.evaluation.seconds);
  return json.dump(1) + "\n";
}

int bench_metrics(const CommandLine& line, MetricsBench bench) {
  const at::Device device = find_device(line.device);
  bench.options.sorts = bench.sort_rounds > 0;
  catch_interrupts();
  const Evaluator evaluator = make_evaluator(line, bench.options.classes);
  const MetricSpeed speed(evaluator, bench.options, device);
  const MetricTimes times = measure(speed, bench);
  std::cout << (bench.json ? as_json(times, bench, device) : as_table(times, bench, device));
  return kSuccess;
}

}  // namespace

void add_bench_metrics_command(CLI::App& bench_app, CommandLine& line) {
  const auto [command, bench] = add_subcommand<MetricsBench>(
      bench_app, line, "metrics", bench_metrics,
      "Metrics on random scores, against sorting them: average-K thresholds, label ranks, and the whole evaluation "
      "in images/s, each with its memory");
  add_device_option(*command, line);
  add_integer(*command, "--samples", bench->options.samples, 1, 100000000, "Samples of the split");
  add_integer(*command, "--classes", bench->options.classes, 2, 1000000, "Classes");
  add_integer(*command, "--rounds", bench->rounds, 1, 1000, "Rounds of measuring each");
  add_integer(*command, "--sort-rounds", bench->sort_rounds, 0, 1000,
              "In how many of them the sorts, which are slow and take memory, are measured too");
  command->add_flag("--json", bench->json, "Prints JSON instead of a table");
}

}  // namespace settrain
