#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "apps/settrain/bench_command.h"
#include "src/core/interrupt.h"
#include "src/core/table_text.h"
#include "src/core/text.h"
#include "src/measure/bench/place_coverage.h"

namespace settrain {
namespace {

struct PlacesBench {
  std::string scores;
  std::vector<std::string> rules{"conformal:lac:0.1", "conformal:aps(randomised=true):0.1"};
  PlaceBench options;
  bool json = false;
};

int bench_places(const CommandLine& /*line*/, const PlacesBench& bench) {
  catch_interrupts();
  std::vector<SetRule> rules;
  for (const std::string& rule : bench.rules) rules.push_back(parse_set_rule(rule));
  const ScoreFile scores = read_score_file(bench.scores);
  const PlaceBench& options = bench.options;
  nlohmann::ordered_json json{{"draws", options.draws}, {"images", options.images}, {"imbalance", options.imbalance}};
  std::vector<std::vector<std::string>> rows;
  for (const SetRule& rule : rules) {
    for (const PlaceOutcome& outcome : place_coverage(rule, scores, options)) {
      rows.push_back({rule.name(), outcome.way, fmt::format("{:.2f}", 100 * outcome.coverage),
                      fmt::format("{:.2f}", 100 * outcome.error), fmt::format("{:.2f}", outcome.mean_size)});
      json["rules"][rule.name()].push_back({{"way", outcome.way},
                                            {"coverage", outcome.coverage},
                                            {"error", outcome.error},
                                            {"mean_size", outcome.mean_size}});
    }
  }
  if (bench.json) {
    std::cout << json.dump(1) << '\n';
  } else {
    std::cout << fmt::format("{} draws of {} images of {} classes, whose shares differ by up to {:g} times\n\n",
                             format_count(options.draws), format_count(options.images),
                             format_count(scores.facts.classes), options.imbalance)
              << markdown_table({"rule", "at the place", "coverage, %", "standard error, %", "mean size"}, rows);
  }
  return kSuccess;
}

}  // namespace

void add_bench_places_command(CLI::App& bench_app, CommandLine& line) {
  const auto [command, bench] = add_subcommand<PlacesBench>(
      bench_app, line, "places", bench_places,
      "Coverage of rules at places whose classes have other shares, by resampling a file of scores");
  command->add_option("scores", bench->scores, "A file of scores, as settrain calibrate takes it")->required();
  command->add_option("--rules", bench->rules, "The rules")->capture_default_str();
  add_integer(*command, "--draws", bench->options.draws, 2, 1000000, "Places that are drawn");
  add_integer(*command, "--images", bench->options.images, 1, 100000000, "Images that judge at each");
  command->add_option("--imbalance", bench->options.imbalance, "The commonest class' share there over the rarest's")
      ->check(number_between(1.0, 1e9))
      ->capture_default_str();
  command->add_option("--seed", bench->options.seed, "Of what is drawn")->capture_default_str();
  command->add_flag("--json", bench->json, "Prints JSON instead of a table");
}

}  // namespace settrain
