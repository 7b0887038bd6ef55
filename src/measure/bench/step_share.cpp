#include "src/measure/bench/step_share.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "src/config/load.h"
#include "src/core/error.h"
#include "src/measure/bench/random_images.h"
#include "src/measure/cost/throughput.h"
#include "src/train/experiment.h"
#include "src/train/experiment_schema.h"

namespace settrain {
namespace {

Experiment training_of(const Registries& registries, const std::string& model, int64_t batch, int64_t classes,
                       at::Device device) {
  std::vector<std::string> settings = random_images(registries.models.at(model), batch, /*size=*/0, classes);
  settings.push_back("model.name=" + model);
  settings.push_back("loss.name=cross_entropy");
  settings.push_back(fmt::format("run.threads={}", at::get_num_threads()));
  return make_experiment(registries, config::load(experiment_schema(registries), {}, settings), device);
}

}  // namespace

StepShares measure_step_shares(const Registries& registries, const LossBenchOptions& options, const std::string& model,
                               int64_t batch, int64_t classes, at::Device device) {
  Experiment run = training_of(registries, model, batch, classes, device);
  Throughput throughput(run);
  StepShares all{batch, classes, {}, {}};
  std::deque<LossSubject> subjects;
  TurnOptions turns = options.turns;
  turns.max_seconds *= 10;  // the step takes long
  std::vector<std::function<void()>> works{[&] { throughput.take_cached_step(); }};
  const auto add = [&](const std::string& loss) {
    LossCase what = options.base;
    what.loss = loss;
    what.batch = batch;
    what.classes = classes;
    what.epsilon = options.epsilons.front();
    what.scores_sd = options.scores_sds.front();
    subjects.emplace_back(registries.losses, what, device);
    works.emplace_back([subject = &subjects.back()] { subject->step(); });
  };
  add("cross_entropy");
  for (const char* loss : kCostlyLosses) {
    if (!is_asked_for(options, loss)) continue;
    all.losses.push_back({loss, {}, {}});
    add(loss);
  }
  const auto seconds = measure_in_turns(works, device, turns);
  all.step_seconds = seconds[0];
  for (size_t i = 0; i < all.losses.size(); ++i) {
    StepShare& share = all.losses[i];
    share.seconds = seconds[2 + i];
    const size_t rounds = std::min({share.seconds.size(), seconds[0].size(), seconds[1].size()});
    for (size_t round = 0; round < rounds; ++round) {
      share.shares.push_back((share.seconds[round] - seconds[1][round]) / seconds[0][round]);
    }
  }
  return all;
}

}  // namespace settrain
