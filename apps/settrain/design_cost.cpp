#include "apps/settrain/design_cost.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <iostream>

#include "apps/settrain/design_run.h"
#include "models/cost.h"
#include "src/config/load.h"
#include "src/config/value.h"
#include "src/core/interrupt.h"
#include "src/core/log.h"
#include "src/core/table_text.h"
#include "src/measure/cost/throughput.h"
#include "src/papers/design/needed_data.h"
#include "src/studies/sweep/grid_runs.h"
#include "src/train/compute_policy.h"
#include "src/train/evaluation.h"
#include "src/train/experiment.h"
#include "src/train/experiment_schema.h"

namespace settrain {
namespace {

// Where all is trained, the backward pass computes twice what the forward pass does.
constexpr double kPassesOfTraining = 3;

// A step of a whole batch takes too long on a CPU.
constexpr int64_t kMostImagesOnCpu = 16;

int64_t measured_batch(int64_t batch, const at::Device& device) {
  return device.is_cuda() ? batch : std::min(batch, kMostImagesOnCpu);
}

// The settings of the model and its precision. Losses and heads keep their defaults, since they take little of a step
// (docs/benchmarks.md). images_of_run() allows for parts that are not trained.
StepKind step_kind(const ModelEntry& model, const config::Config& config, const DataFacts& facts,
                   const at::Device& device) {
  const int64_t batch = measured_batch(config.get<int64_t>("data.batch_size"), device);
  StepKind kind = random_images(model, batch, facts.size, facts.classes);
  kind.push_back(fmt::format("data.channels={}", facts.channels));
  for (const config::Entry& entry : config.entries()) {
    const bool is_of_step =
        entry.path.starts_with("model.") || entry.path == "train.precision" || entry.path == "train.channels_last";
    const bool is_apart = entry.path.starts_with("model.pretrained") || entry.path == "model.trainable" ||
                          entry.path.starts_with("model.head");
    if (!is_of_step || is_apart) continue;
    kind.push_back(fmt::format("{}={}", entry.path, config::yaml_value(entry.key, entry.value)));
  }
  return kind;
}

// The images that an evaluation of the key's splits scores.
int64_t images_to_score(const config::Config& config, const char* path, const DataFacts& facts) {
  const std::map<std::string, int64_t> images{
      {"train", facts.train}, {"val", facts.val}, {"calibration", facts.calibration}, {"test", facts.test}};
  int64_t sum = 0;
  for (const auto& split : splits_to_score(config, config.get<config::Texts>(path), facts.calibration > 0)) {
    sum += images.at(split);
  }
  return sum;
}

// The number of images such that training all parts on all of them would take as long as the run. `passes`: see
// training_passes().
double images_of_run(const config::Config& config, const DataFacts& facts, double passes) {
  const auto epochs = config.get<int64_t>("train.epochs"), every = config.get<int64_t>("eval.every");
  const int64_t crops = config.read<EvalOptions>("eval").crops == EvalOptions::kTen ? 10 : 1;
  const int64_t selected = std::max<int64_t>(1, std::ssize(config.get<config::Texts>("select")));
  const int64_t trained = epochs * facts.train;
  const int64_t evaluations = (epochs + every - 1) / every;  // one after the last epoch
  const int64_t evaluated = evaluations * images_to_score(config, "eval.during_training", facts) +
                            selected * crops * images_to_score(config, "eval.splits", facts);
  return (passes * static_cast<double>(trained) + static_cast<double>(evaluated)) / kPassesOfTraining;
}

struct ListArguments {
  std::string preset = "paper";
  bool measure = false;
};

int list_designs(const CommandLine& line, const ListArguments& arguments, const std::string& what,
                 std::vector<std::string> head, const std::function<DesignRows(DesignList&)>& rows) {
  std::optional<double> speed;
  if (arguments.measure) {
    catch_interrupts();
    ProgressBar bar;
    speed = DesignCosts(line).measure_speed(bar);
  }
  head.insert(head.end(), {"runs", speed ? "hours" : "multiply-adds", "needs", "there"});
  DesignList list(line, arguments.preset, speed);
  std::cout << markdown_table(head, rows(list));
  const std::string which =
      speed ? fmt::format(
                  "hours of all runs one after the other on {}, from multiply-adds at {:.3g} G/s, as measured now "
                  "in steps of ResNet-18; small networks may take many times as long; loading images is left out",
                  find_device(line.device).str(), *speed / 1e9)
            : fmt::format("multiply-adds of all runs; --measure makes hours of them, roughly");
  log::info(fmt::format("[{0}] preset {1}; {2}; `settrain {0} NAME --dry-run` measures the steps of its own runs", what,
                        arguments.preset, which));
  return kSuccess;
}

}  // namespace

void DesignCost::add_files(const config::Config& config) {
  const NeededFiles files = needed_files(config);
  add_once(data, files.data);
  if (files.weights) add_once(weights, *files.weights);
  for (const std::string& sentence : missing_files(config)) add_once(missing, sentence);
}

std::string DesignCost::needs_lines() const {
  std::string text = fmt::format("needs: {}\n", needs());
  for (const std::string& sentence : missing) text += fmt::format("missing: {}\n", sentence);
  return text;
}

std::string DesignCost::needs() const {
  std::string text = fmt::format("{}", fmt::join(data, "; "));
  if (!weights.empty()) text += "; " + weights.front();
  if (weights.size() > 1) text += fmt::format(" and {} more", weights.size() - 1);
  return text;
}

DesignCost DesignCosts::count(const RunDesign& design, const std::vector<WantedCell>& cells) {
  const config::Schema schema = experiment_schema(line_.registries);
  const at::Device device = find_device(line_.device);
  Grid grid = grid_of(design, cells);
  const auto seeds = std::max<int64_t>(1, std::ssize(grid.seeds));
  if (seeds > 1) grid.seeds.resize(1);  // runs that differ by their seed alone cost the same
  int64_t repeated = 0;
  DesignCost cost;
  for (const SweepPoint& point : make_runs(grid, schema, 1, repeated)) {
    const config::Config config = config::load(schema, grid.base, point.overrides);
    cost.runs += seeds;
    cost.add_files(config);
    const auto facts = facts_of(line_.registries.datasets, config);
    if (!facts) {
      cost.is_known = false;
      continue;
    }
    const ModelEntry& model = line_.registries.models.at(config.get<std::string>("model.name"));
    const StepKind kind = step_kind(model, config, *facts, device);
    const ModelContext input{facts->classes, facts->channels, facts->size, facts->size};
    const auto [forward, is_new] = forward_.try_emplace(kind);
    if (is_new) forward->second = static_cast<double>(network_cost(model, config, input).multiply_adds);
    const double passes = training_passes(model, config, input);
    const double images = static_cast<double>(seeds) * images_of_run(config, *facts, passes);
    cost.images[kind] += images;
    cost.multiply_adds += kPassesOfTraining * forward->second * images;
  }
  return cost;
}

double DesignCosts::seconds_per_image(const StepKind& kind, ProgressBar& bar) const {
  throw_if_interrupted();
  bar.update({.stage = "[measure] steps", .done = 0, .total = 0, .after = 0, .figures = ""});
  const at::Device device = find_device(line_.device);
  Experiment run =
      make_experiment(line_.registries, config::load(experiment_schema(line_.registries), {}, kind), device);
  Throughput throughput(run);
  StepTimes warm_up, times;
  throughput.take_cached(device.is_cuda() ? 5 : 1, warm_up);
  throughput.take_cached(device.is_cuda() ? 20 : 3, times);
  // The median step, since other processes may use the machine too.
  return median(times.seconds) * static_cast<double>(times.seconds.size()) / static_cast<double>(times.images);
}

double DesignCosts::measure_seconds(const DesignCost& cost, ProgressBar& bar) const {
  double seconds = 0;
  for (const auto& [kind, images] : cost.images) seconds += images * seconds_per_image(kind, bar);
  return seconds;
}

double DesignCosts::measure_speed(ProgressBar& bar) const {
  // Of the experiments that are measured in this process, a later one may train in bf16.
  TrainOptions options;
  options.precision = "bf16";
  keep_training_from_broken_amx(options, find_device(line_.device));
  const ModelEntry& model = line_.registries.models.at("resnet18");
  StepKind kind = random_images(model, measured_batch(128, find_device(line_.device)), 0, 0);
  kind.push_back("model.name=" + model.name);
  const config::Config config = config::load(experiment_schema(line_.registries), {}, kind);
  const auto forward = static_cast<double>(network_cost(model, config, model.usual).multiply_adds);
  return kPassesOfTraining * forward / seconds_per_image(kind, bar);
}

std::vector<std::string> DesignList::row(std::vector<std::string> front, const RunDesign& design,
                                         const std::vector<WantedCell>& cells) {
  const DesignCost cost = costs_.count(design, cells);
  const double hours = cost.multiply_adds / speed_.value_or(1) / 3600;
  const std::string price = !speed_      ? fmt::format("{:.1e}", cost.multiply_adds)
                            : hours < 10 ? fmt::format("{:.2f}", hours)
                                         : fmt::format("{:.0f}", hours);
  front.insert(front.end(), {std::to_string(cost.runs), cost.is_known ? price : "", cost.needs(),
                             cost.missing.empty() ? "yes" : "no"});
  return front;
}

void add_design_list(CLI::App& command, CommandLine& line, const std::string& what, std::vector<std::string> head,
                     std::function<DesignRows(DesignList&)> rows) {
  const auto run = [what, head = std::move(head), rows = std::move(rows)](const CommandLine& used,
                                                                          const ListArguments& arguments) {
    return list_designs(used, arguments, what, head, rows);
  };
  const auto [list, arguments] = add_subcommand<ListArguments>(
      command, line, "list", run,
      fmt::format("Every {} with the runs that it takes, what they cost, what they need, and whether that is there",
                  what));
  add_preset_option(*list, arguments->preset);
  CLI::Option* measure = list->add_flag("--measure", arguments->measure,
                                        "Hours in place of multiply-adds, by the speed of this machine, measured now");
  add_device_option(*list, line);
  list->get_option("--device")->needs(measure);
}

}  // namespace settrain
