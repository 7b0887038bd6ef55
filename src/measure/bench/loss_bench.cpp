#include "src/measure/bench/loss_bench.h"

#include <ATen/Parallel.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <iterator>
#include <utility>

#include "src/config/load.h"
#include "src/core/error.h"
#include "src/core/text.h"
#include "src/measure/cost/throughput.h"
#include "src/train/experiment.h"
#include "src/train/experiment_schema.h"
#include "src/train/peak_memory.h"

namespace settrain {
namespace {

bool is_asked_for(const LossBenchOptions& options, const std::string& loss) {
  const auto& names = options.losses;
  return names.empty() || std::find(names.begin(), names.end(), loss) != names.end();
}

// The registry's losses that have a gradient, as far as they are asked for.
std::vector<const LossEntry*> entries_of(const LossRegistry& registry, const LossBenchOptions& options) {
  std::vector<const LossEntry*> entries;
  for (const LossEntry& entry : registry.entries()) {
    if (entry.has_gradient && is_asked_for(options, entry.name)) entries.push_back(&entry);
  }
  return entries;
}

LossCase first_case(const LossBenchOptions& options, const std::string& loss) {
  LossCase made = options.base;
  made.loss = loss;
  made.epsilon = options.epsilons.front();
  made.scores_sd = options.scores_sds.front();
  return made;
}

// The case in every way in which it can be computed.
void add_methods(const LossEntry& entry, LossCase made, std::vector<LossCase>& cases) {
  const auto add = [&](LossMethod method) {
    made.method = method;
    cases.push_back(made);
  };
  add(LossMethod::kFast);
  if (!entry.has_kernels) return;
  if (LossSubject::draws_noise(entry)) add(LossMethod::kUnpruned);
  add(LossMethod::kPlain);
}

// Puts cross-entropy of every size that occurs before them.
std::vector<LossCase> with_references(const std::vector<LossCase>& cases, const LossBenchOptions& options) {
  std::vector<LossCase> all;
  for (const LossCase& loss_case : cases) {
    LossCase reference = first_case(options, LossCase::kReference);
    reference.classes = loss_case.classes;
    if (std::find(all.begin(), all.end(), reference) == all.end()) all.push_back(reference);
  }
  std::copy_if(cases.begin(), cases.end(), std::back_inserter(all),
               [](const LossCase& loss_case) { return !loss_case.is_reference(); });
  return all;
}

std::vector<LossTimes> measure(const LossRegistry& registry, const std::vector<LossCase>& wanted,
                               const LossBenchOptions& options, at::Device device) {
  const std::vector<LossCase> cases = with_references(wanted, options);
  std::deque<LossSubject> subjects;
  std::vector<LossTimes> all;
  std::vector<std::function<void()>> works;
  for (const LossCase& loss_case : cases) {
    LossSubject* subject = &subjects.emplace_back(registry, loss_case, device);
    all.push_back({.subject = loss_case, .seconds = {}, .to_reference = {}, .drawn = subject->drawn_classes()});
    // A slow loss takes seconds: its memory is measured while it warms up.
    works.emplace_back([subject, &all, i = all.size() - 1] {
      if (all[i].memory > 0) return subject->step();
      all[i].memory = subject->memory();
    });
  }
  const auto seconds = measure_in_turns(works, device, options.turns);
  for (size_t i = 0; i < all.size(); ++i) {
    const auto reference = std::find_if(all.begin(), all.end(), [&](const LossTimes& other) {
      return other.subject.is_reference() && other.subject.classes == all[i].subject.classes;
    });
    all[i].seconds = seconds[i];
    all[i].to_reference = ratios(seconds[i], seconds[static_cast<size_t>(reference - all.begin())]);
  }
  return all;
}

// kCostlyLosses with each of these values of K or of the classes.
std::vector<LossTimes> measure_growth(const LossRegistry& registry, const LossBenchOptions& options, at::Device device,
                                      int64_t LossCase::*size, const std::vector<int64_t>& values) {
  std::vector<LossCase> cases;
  for (const char* loss : kCostlyLosses) {
    if (!is_asked_for(options, loss)) continue;
    for (const int64_t value : values) {
      LossCase made = first_case(options, loss);
      made.*size = value;
      if (made.k < made.classes) cases.push_back(made);
    }
  }
  return measure(registry, cases, options, device);
}

Experiment training_of(const Registries& registries, const std::string& model, int64_t batch, int64_t classes,
                       at::Device device) {
  std::vector<std::string> settings = random_images(registries.models.at(model), batch, /*size=*/0, classes);
  settings.push_back("model.name=" + model);
  settings.push_back("loss.name=cross_entropy");
  settings.push_back(fmt::format("run.threads={}", at::get_num_threads()));
  return make_experiment(registries, config::load(experiment_schema(registries), {}, settings), device);
}

}  // namespace

void check(const LossRegistry& registry, const LossBenchOptions& options, at::Device device) {
  const LossCase& base = options.base;
  if (base.k >= base.classes) {
    throw ConfigError(fmt::format("--k {}: must be less than the number of classes, {}", base.k, base.classes));
  }
  for (const std::string& loss : options.losses) {
    if (!registry.at(loss).has_gradient) {
      throw ConfigError(fmt::format("--losses: {} has no gradient, so there is no step to measure", loss));
    }
  }
  for (const auto& [name, values] : {std::pair{"--epsilon", &options.epsilons}, {"--scores-sd", &options.scores_sds}}) {
    for (const double value : *values) {
      if (!std::isfinite(value)) throw ConfigError(fmt::format("{}: expected finite numbers, got {}", name, value));
    }
  }
  // Every loss keeps its scores, and what the hungriest takes in a step is 40 times as much.
  const double losses = static_cast<double>(options.losses.empty() ? registry.entries().size() : options.losses.size());
  const double needed = 4.0 * static_cast<double>(base.batch) * static_cast<double>(base.classes) * (4 * losses + 40);
  const auto available = static_cast<double>(available_memory(device));
  if (available > 0 && needed > available) {
    throw Error(
        fmt::format("{} samples of {} classes take about {} of memory here, of which {} are available: "
                    "fewer --batch, --classes or --losses",
                    format_count(base.batch), format_count(base.classes), format_bytes(static_cast<uint64_t>(needed)),
                    format_bytes(static_cast<uint64_t>(available))));
  }
}

std::vector<LossTimes> measure_losses(const LossRegistry& registry, const LossBenchOptions& options,
                                      at::Device device) {
  std::vector<LossCase> cases{first_case(options, LossCase::kReference)};
  for (const LossEntry* entry : entries_of(registry, options)) {
    add_methods(*entry, first_case(options, entry->name), cases);
  }
  return measure(registry, cases, options, device);
}

std::vector<LossTimes> measure_scores(const LossRegistry& registry, const LossBenchOptions& options,
                                      at::Device device) {
  if (options.epsilons.size() * options.scores_sds.size() == 1) return {};
  std::vector<LossCase> cases;
  for (const LossEntry* entry : entries_of(registry, options)) {
    if (!LossSubject::draws_noise(*entry)) continue;
    for (const double epsilon : options.epsilons) {
      for (const double sd : options.scores_sds) {
        LossCase made = first_case(options, entry->name);
        made.epsilon = epsilon;
        made.scores_sd = sd;
        add_methods(*entry, made, cases);
      }
    }
  }
  if (cases.empty()) return {};
  return measure(registry, cases, options, device);
}

std::vector<LossTimes> measure_growth_in_k(const LossRegistry& registry, const LossBenchOptions& options,
                                           at::Device device) {
  return measure_growth(registry, options, device, &LossCase::k, {1, 5, 10, 50, 100});
}

std::vector<LossTimes> measure_growth_in_classes(const LossRegistry& registry, const LossBenchOptions& options,
                                                 at::Device device) {
  return measure_growth(registry, options, device, &LossCase::classes, {100, 1000, 10000});
}

std::vector<DeviceTime> measure_device_times(const LossRegistry& registry, const LossBenchOptions& options,
                                             at::Device device) {
  std::vector<DeviceTime> times;
  const auto add = [&](const std::string& name, const std::function<void()>& work) {
    if (const std::optional<double> seconds = device_seconds(work, device)) times.push_back({name, *seconds});
  };
  const at::Tensor one = at::zeros({1}, device);
  add("a small kernel", [&] { one.add_(1); });
  for (const LossEntry& entry : registry.entries()) {
    if (!entry.has_kernels || !is_asked_for(options, entry.name)) continue;
    LossSubject subject(registry, first_case(options, entry.name), device);
    add(entry.name, [&] { subject.step(); });
  }
  return times;
}

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
    LossCase made = first_case(options, loss);
    made.batch = batch;
    made.classes = classes;
    works.emplace_back([subject = &subjects.emplace_back(registries.losses, made, device)] { subject->step(); });
  };
  add(LossCase::kReference);
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

const LossTimes* find(const std::vector<LossTimes>& all, LossCase subject, LossMethod method) {
  subject.method = method;
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const LossTimes& times) { return times.subject == subject; });
  return found == all.end() ? nullptr : &*found;
}

const char* name_of(LossMethod method) {
  switch (method) {
    case LossMethod::kFast:
      return "fast";
    case LossMethod::kUnpruned:
      return "unpruned";
    case LossMethod::kPlain:
      break;
  }
  return "plain";
}

}  // namespace settrain
