#include "apps/settrain/design_cost.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "src/config/format.h"
#include "src/config/load.h"
#include "src/core/interrupt.h"
#include "src/measure/bench/made_up_images.h"
#include "src/measure/cost/throughput.h"
#include "src/papers/design/data_facts.h"
#include "src/studies/sweep/points.h"
#include "src/train/experiment.h"
#include "src/train/experiment_schema.h"

namespace settrain {
namespace {

// A step of a whole batch takes too long on a CPU to be waited for.
constexpr int64_t kMostImagesOnCpu = 16;

// The settings of a run on made-up images that takes steps of the same time: the model, and how it is computed. Losses
// and heads are left at their defaults, since they take next to nothing of a step (docs/benchmarks.md).
std::vector<std::string> step_settings(const ModelRegistry& models, const config::Config& config,
                                       const DataFacts& facts, bool is_cuda) {
  const auto batch = config.get<int64_t>("data.batch_size");
  std::vector<std::string> settings =
      made_up_images(models.at(config.get<std::string>("model.name")),
                     is_cuda ? batch : std::min(batch, kMostImagesOnCpu), facts.size, facts.classes);
  settings.push_back(fmt::format("data.channels={}", facts.channels));
  for (const config::Entry& entry : config.entries()) {
    const bool is_of_step =
        entry.path.starts_with("model.") || entry.path == "train.precision" || entry.path == "train.channels_last";
    const bool is_apart = entry.path == "model.pretrained" || entry.path.starts_with("model.head");
    if (!is_of_step || is_apart) continue;
    settings.push_back(fmt::format("{}={}", entry.path, config::yaml_value(entry.key, entry.value)));
  }
  return settings;
}

}  // namespace

double DesignCosts::seconds_an_image(const config::Config& config, const std::string& what, ProgressBar& bar) {
  const at::Device device = find_device(line_.device);
  const std::vector<std::string> settings =
      step_settings(line_.registries.models, config, *facts_of(config), device.is_cuda());
  const auto known = measured_.find(fmt::format("{}", fmt::join(settings, " ")));
  if (known != measured_.end()) return known->second;
  throw_if_interrupted();
  bar.update(
      {.stage = "[measure] steps: " + what, .done = std::ssize(measured_), .total = 0, .after = 0, .figures = ""});
  Experiment run =
      make_experiment(line_.registries, config::load(experiment_schema(line_.registries), {}, settings), device);
  Throughput throughput(run);
  StepTimes warm_up, times;
  throughput.take_cached(device.is_cuda() ? 5 : 1, warm_up);
  throughput.take_cached(device.is_cuda() ? 20 : 3, times);
  // Of single steps the middle one, since others may use the machine too.
  const double seconds =
      median(times.seconds) * static_cast<double>(std::ssize(times.seconds)) / static_cast<double>(times.images);
  measured_.emplace(fmt::format("{}", fmt::join(settings, " ")), seconds);
  return seconds;
}

std::string DesignCost::needs() const {
  std::string text = fmt::format("{}", fmt::join(data, "; "));
  if (!weights.empty()) text += "; " + weights.front();
  if (weights.size() > 1) text += fmt::format(" and {} more", weights.size() - 1);
  return text;
}

DesignCost DesignCosts::of(const RunDesign& design, const std::vector<WantedCell>& cells, ProgressBar& bar) {
  DesignCost cost;
  const config::Schema schema = experiment_schema(line_.registries);
  int64_t repeated = 0;
  const Grid grid = grid_of(design, cells);
  const std::vector<SweepPoint> points = make_points(grid, schema, 1, repeated);
  cost.runs = std::ssize(points);
  double seconds = 0;
  bool is_known = with_time_;
  for (const SweepPoint& point : points) {
    const config::Config config = config::load(schema, grid.base, point.overrides);
    const NeededFiles files = needed_files(config);
    add_once(cost.data, files.data);
    if (files.weights) add_once(cost.weights, *files.weights);
    for (const std::string& sentence : missing_files(config)) add_once(cost.missing, sentence);
    const auto facts = facts_of(config);
    if (!facts) is_known = false;
    if (!is_known) continue;
    const auto epochs = config.get<int64_t>("train.epochs"), every = config.get<int64_t>("eval.every");
    const double crops = config.get<std::string>("eval.crops") == "ten" ? 10 : 1;
    const auto selected = static_cast<double>(config.get<config::Texts>("select").size());
    const double trained = static_cast<double>(epochs * facts->train);
    const double evaluated = static_cast<double>(epochs / every * facts->val) +
                             selected * crops * static_cast<double>(facts->val + facts->test);
    constexpr double kShareOfForward = 1.0 / 3;
    seconds += (trained + kShareOfForward * evaluated) * seconds_an_image(config, design.name, bar);
  }
  if (is_known) cost.seconds = seconds;
  return cost;
}

}  // namespace settrain
