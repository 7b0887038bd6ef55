#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "apps/settrain/bench_command.h"
#include "src/core/interrupt.h"
#include "src/core/table_text.h"
#include "src/core/text.h"
#include "src/measure/bench/speed.h"
#include "src/measure/cost/throughput.h"
#include "src/train/compute_threads.h"

namespace settrain {
namespace {

struct SetsBench {
  int64_t images = 50000, classes = 1000, rounds = 5, threads = at::get_num_threads();
  std::string scores;
  std::vector<std::string> rules{"top:5",
                                 "average:5",
                                 "error:0.1",
                                 "average-error:0.1",
                                 "conformal:lac:0.1",
                                 "conformal:aps:0.1",
                                 "conformal:raps:0.1",
                                 "conformal:saps:0.1",
                                 "conformal:pas:0.1",
                                 "conformal:lac:0.1:classwise",
                                 "conformal:aps:0.1:classwise",
                                 "conformal:lac:0.1:clustered",
                                 "conformal:lac:0.1:rc3p",
                                 "conformal:lac:0.1:fuzzy(1e-05)"};
  bool json = false;
};

std::vector<SetTimes> measure(const std::vector<SetRule>& rules, const ScoreFile& scores, int64_t rounds) {
  std::vector<SetTimes> times(rules.size());
  ProgressBar bar;
  Progress progress{.stage = "[bench] rounds", .total = rounds * std::ssize(rules), .figures = ""};
  for (int64_t round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < rules.size(); ++i, ++progress.done) {
      bar.update(progress);
      measure_sets(rules[i], scores, times[i]);
    }
  }
  bar.hide();
  return times;
}

int bench_sets(const CommandLine& /*line*/, const SetsBench& bench) {
  catch_interrupts();
  std::vector<SetRule> rules;
  for (const std::string& rule : bench.rules) rules.push_back(parse_set_rule(rule));
  set_compute_threads(static_cast<int>(bench.threads));
  const ScoreFile scores =
      bench.scores.empty() ? random_labelled_scores(bench.images, bench.classes) : read_score_file(bench.scores);
  const std::vector<SetTimes> times = measure(rules, scores, bench.rounds);
  const int64_t images = scores.scores.scores.size(0), classes = scores.facts.classes;
  nlohmann::ordered_json json{{"images", images}, {"classes", classes}, {"threads", bench.threads}};
  std::vector<std::vector<std::string>> rows;
  for (size_t i = 0; i < rules.size(); ++i) {
    const double calibrate_ms = 1000 * median(times[i].calibrate), predict_ms = 1000 * median(times[i].predict);
    rows.push_back({rules[i].name(), fmt::format("{:.1f}", calibrate_ms), fmt::format("{:.1f}", predict_ms),
                    fmt::format("{:.2f}", times[i].mean_size)});
    json["rules"].push_back({{"rule", rules[i].name()},
                             {"calibrate_ms", calibrate_ms},
                             {"predict_ms", predict_ms},
                             {"mean_size", times[i].mean_size}});
  }
  if (bench.json) {
    std::cout << json.dump(1) << '\n';
  } else {
    std::cout << fmt::format("{} images, {} classes, {} threads; medians of {} rounds\n\n", format_count(images),
                             format_count(classes), bench.threads, bench.rounds)
              << markdown_table({"rule", "calibrate, ms", "predict, ms", "mean size"}, rows);
  }
  return kSuccess;
}

}  // namespace

void add_bench_sets_command(CLI::App& bench_app, CommandLine& line) {
  const auto [command, bench] = add_subcommand<SetsBench>(
      bench_app, line, "sets", bench_sets,
      "Rules that answer with sets: calibrating them on scores, and the sets of the same images");
  add_integer(*command, "--images", bench->images, 10, 100000000, "Images");
  add_integer(*command, "--classes", bench->classes, 6, 1000000, "Classes");
  command->add_option("--scores", bench->scores,
                      "A file of scores, as settrain calibrate takes it, in place of random ones");
  command->add_option("--rules", bench->rules, "The rules; without it one of each kind");
  add_integer(*command, "--rounds", bench->rounds, 1, 1000, "Rounds of measuring each");
  add_integer(*command, "--threads", bench->threads, 1, 1024, "Compute threads");
  command->add_flag("--json", bench->json, "Prints JSON instead of a table");
}

}  // namespace settrain
