#include "src/train/resume_point.h"

#include <ATen/ops/tensor.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "src/core/error.h"
#include "src/core/log.h"
#include "src/core/text.h"
#include "src/train/provenance.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMeasured = "state.measured";
constexpr const char* kAccumulate = "train.accumulate";

std::string quoted(const fs::path& file) {
  return fmt::format("'{}'", file.string());
}

// Calls `visit` with each scalar of the state and its name in a checkpoint.
void for_each_scalar(auto& state, const auto& visit) {
  visit("state.epoch", state.epoch);
  visit("state.batch", state.batch);
  visit("state.step", state.step);
  visit("state.loss_sum", state.sum.loss_sum);
  visit("state.correct", state.sum.correct);
  visit("state.count", state.sum.count);
  visit("state.early_loss", state.early_loss);
  visit("state.late_loss", state.late_loss);
}

// A key of one of the two configs, since another variant brings other keys.
void check_known(const std::string& key, const config::Config& recorded, const config::Config& wanted) {
  std::set<std::string> known;
  for (const config::Config* config : {&recorded, &wanted}) {
    for (const config::Entry& entry : config->entries()) known.insert(entry.path);
  }
  if (known.contains(key)) return;
  throw ConfigError(fmt::format("--allow {}: the configuration has no such key{}", key,
                                did_you_mean(key, std::vector<std::string>(known.begin(), known.end()))));
}

// Compares the micro-batches of a whole step: train.accumulate times the number of processes. `before`: that number
// then; `now`: today.
void compare_steps(int64_t before, const config::Config& wanted, int64_t now,
                   std::vector<config::Difference>& changes) {
  const int64_t accumulate = wanted.get<int64_t>(kAccumulate);
  const auto change = std::ranges::find(changes, kAccumulate, &config::Difference::path);
  const int64_t accumulate_before = change == changes.end()  ? accumulate
                                    : change->before.empty() ? 1
                                                             : std::stoll(change->before);
  if (change != changes.end()) changes.erase(change);
  if (accumulate_before * before == accumulate * now) return;
  const auto written = [](int64_t batches, int64_t processes) {
    return processes == 1 ? std::to_string(batches) : fmt::format("{} in each of {} processes", batches, processes);
  };
  const int64_t batches = accumulate_before * before;
  const std::string hint =
      batches % now == 0 ? fmt::format(" ({} would make the same steps)", batches / now) : std::string();
  changes.push_back({kAccumulate, written(accumulate_before, before), written(accumulate, now) + hint});
}

// The processes of a run without a checkpoint: those that config.yaml was last written for.
int64_t processes_of(const nlohmann::ordered_json& provenance) {
  if (!provenance.is_object()) return 1;
  const nlohmann::ordered_json* last = &provenance;
  if (const auto resumed = provenance.find("resumed"); resumed != provenance.end() && !resumed->empty())
    last = &resumed->back();
  const auto found = last->find("processes");
  return found == last->end() ? 1 : found->at("count").get<int64_t>();
}

// Whether checkpoints that are made with one of the values do not fit the other: they hold other tensors, or belong to
// another network or input.
bool changes_checkpoints(const config::Difference& change) {
  const auto& [path, before, after] = change;
  if (is_of_network(path) || path == "optimizer.name") return true;
  // Weights fit another input, but the best checkpoints were chosen with theirs.
  if (path == "data.input_size" || path == "data.normalisation") return true;
  // role alone among the losses keeps tensors: the estimated labels, and what their optimizer remembers.
  if (path == "loss.name") return before == "role" || after == "role";
  // 0 keeps no average and no momentum.
  const auto keeps = [](const std::string& number) { return parse_number<double>(number).value_or(0) > 0; };
  if (path == "train.ema_decay" || path == "loss.theta_optimizer.momentum") return keeps(before) != keeps(after);
  return path == "loss.theta_optimizer.name";
}

// `steps`: that the run has taken.
void check_changes(const std::vector<config::Difference>& changes, const config::Config& wanted,
                   const ResumeTerms& terms, const fs::path& made_by, int64_t steps) {
  const auto or_none = [](const std::string& value) { return value.empty() ? "no such key" : value; };
  std::string lines, allow;
  bool any_is_fixed = false;
  for (const config::Difference& change : changes) {
    const auto& [path, before, after] = change;
    const bool is_fixed = changes_checkpoints(change);
    const bool allowed = std::count(terms.allowed_keys.begin(), terms.allowed_keys.end(), path) > 0;
    const bool is_free = path == "train.epochs" || (wanted.has(path) && wanted.at(path).key.is_free);
    if ((allowed && !is_fixed) || is_free) continue;
    // Steps are counted from the start, and the learning rate and the noise of losses follow their numbers.
    const bool is_of_steps = path == "data.batch_size" || path == "data.drop_last" || path == kAccumulate;
    const char* note = is_fixed                   ? " (cannot change within a run)"
                       : is_of_steps && steps > 0 ? " (can change only where an epoch keeps its number of steps)"
                                                  : "";
    lines += fmt::format("\n  {}: {} there, {} now{}", path, or_none(before), or_none(after), note);
    any_is_fixed |= is_fixed;
    allow += " --allow " + path;
  }
  if (lines.empty()) return;
  allow = any_is_fixed ? "" : "; or, where the change is meant for the rest of this one, add" + allow;
  throw ConfigError(
      fmt::format("{} was made with another configuration:{}\nStart a new run{}", quoted(made_by), lines, allow));
}

// The keys whose defaults the run had fitted to its number of classes. Runs of early versions have them only in their
// provenance, which may be lost.
std::vector<std::string> recorded_fitted_keys(const nlohmann::ordered_json& provenance, const Checkpoint* checkpoint) {
  if (checkpoint) {
    if (const auto keys = fitted_keys_of(*checkpoint)) return *keys;
  }
  if (!provenance.is_object()) return {};
  return provenance.value("fitted", std::vector<std::string>());
}

// `wanted` with the run's own values where it has defaults that the run had fitted.
config::Config with_fitted_defaults(const config::Config& recorded, config::Config wanted,
                                    const std::vector<std::string>& fitted) {
  for (const std::string& path : fitted) {
    if (!recorded.has(path) || !wanted.has(path) || !wanted.at(path).origin.is_default()) continue;
    if (recorded.at(path).value.index() != wanted.at(path).value.index()) continue;  // the K of another loss
    wanted = wanted.with(path, recorded.at(path).value);
  }
  return wanted;
}

void check_epochs(const config::Config& wanted, const TrainingState& state) {
  const int64_t begun = state.epoch + (state.batch > 0 ? 1 : 0);
  if (wanted.get<int64_t>("train.epochs") >= begun) return;
  wanted.fail("train.epochs", fmt::format("the run has completed {} epochs{}", state.epoch,
                                          state.batch > 0 ? " and begun another" : ""));
}

// Within an epoch neither what is measured nor the order of its images may change: sums over the epoch would mix two
// things, and some images would come twice and others never.
void check_epoch(const ResumePoint& point) {
  if (point.state.batch == 0) return;
  for (const auto& [path, before, after] : point.changes) {
    constexpr std::array kOfAnEpoch{"train.top_k",  "train.gradient_nonzeros",   "data.batch_size",
                                    "data.sampler", "data.augmentation.repeats", "seed"};
    if (std::ranges::count(kOfAnEpoch, path) == 0) continue;
    throw RunError(fmt::format(
        "{} stands within an epoch, over which {} cannot change: leave the key as it was, or change it where the run "
        "has ended an epoch (--set train.epochs={})",
        point.checkpoint->place(), path, point.state.epoch + 1));
  }
}

// The metrics whose best checkpoint cannot be had any more. One of the last finished epoch is never lost: the last
// checkpoint holds the same.
std::vector<std::string> lost_metrics(const RunFolder& folder, const config::Config& wanted, const ResumePoint& point,
                                      std::string& problems) {
  Selection selection(wanted.get<config::Texts>("select"));
  selection.restore(*point.checkpoint);
  std::vector<std::string> lost;
  for (const BestEpoch& best : selection.best()) {
    if (best.epoch == 0 || (best.epoch == point.state.epoch && point.state.batch == 0)) continue;
    try {
      check_is_best(folder.selected_checkpoint(best.metric), best);
    } catch (const RunError& error) {
      lost.push_back(best.metric);
      problems += fmt::format("\n  {}", error.what());
    }
  }
  return lost;
}

// Without them a run can go on, but ends with other best checkpoints than it would have.
void forget_lost_checkpoints(const RunFolder& folder, const config::Config& wanted, const ResumeTerms& terms,
                             ResumePoint& point) {
  std::string problems;
  for (const std::string& metric : lost_metrics(folder, wanted, point, problems)) {
    point.checkpoint->tensors.erase(selection_tensor(metric));
  }
  if (problems.empty()) return;
  if (point.state.epoch == wanted.get<int64_t>("train.epochs")) {
    throw RunError(
        fmt::format("best checkpoints of the run are lost, and no epoch is left:{}\nPut them back, or train on "
                    "by --allow-inexact --set train.epochs=N",
                    problems));
  }
  if (!terms.allow_inexact) {
    throw RunError(fmt::format(
        "best checkpoints of the run are lost:{}\nPut them back, or go on by --allow-inexact, which keeps the best of "
        "the epochs to come",
        problems));
  }
  log::warning(fmt::format("[run] lost, the best of the epochs to come are kept instead:{}", problems));
}

// Without its last checkpoint a run can only begin, and only where it left nothing yet.
void check_not_begun(const RunFolder& folder) {
  std::error_code ignored;
  const bool has_rows =
      fs::exists(folder.metrics_jsonl(), ignored) && fs::file_size(folder.metrics_jsonl(), ignored) > 0;
  const bool has_results = fs::exists(folder.results_json(), ignored);
  if (!has_rows && !has_results && fs::is_empty(folder.last_checkpoint().parent_path(), ignored)) return;
  throw RunError(fmt::format(
      "{} is missing, from which the run would go on; its other checkpoints can be evaluated, and --overwrite starts it "
      "again",
      quoted(folder.last_checkpoint())));
}

}  // namespace

void add_state(const TrainingState& state, Checkpoint& checkpoint) {
  for_each_scalar(state, [&](const char* name, auto value) {
    if constexpr (std::is_integral_v<decltype(value)>) {
      checkpoint.set_integer(name, value);
    } else {
      checkpoint.set_real(name, value);
    }
  });
  if (!state.sum.measured.empty()) checkpoint.tensors[kMeasured] = at::tensor(state.sum.measured, at::kDouble);
  checkpoint.metadata["time.epoch_s"] = fmt::format("{:.3f}", state.seconds);
}

TrainingState read_state(const Checkpoint& checkpoint) {
  TrainingState state;
  for_each_scalar(state, [&](const char* name, auto& value) {
    if constexpr (std::is_integral_v<std::decay_t<decltype(value)>>) {
      value = checkpoint.integer(name);
    } else {
      value = checkpoint.real(name);
    }
  });
  if (const auto found = checkpoint.tensors.find(kMeasured); found != checkpoint.tensors.end()) {
    const at::Tensor sums = found->second.contiguous();
    if (sums.scalar_type() != at::kDouble || sums.dim() != 1) {
      throw RunError(fmt::format("{}: expected a row of float64 values in '{}'", checkpoint.place(), kMeasured));
    }
    state.sum.measured.assign(sums.const_data_ptr<double>(), sums.const_data_ptr<double>() + sums.numel());
  }
  state.seconds = parse_number<double>(checkpoint.text("time.epoch_s")).value_or(0);
  return state;
}

// Its own record of the metric tells a checkpoint of another epoch or run.
void check_is_best(const fs::path& file, const BestEpoch& expected) {
  Selection selection({expected.metric});
  selection.restore(load_checkpoint(file));
  const BestEpoch& best = selection.best().front();
  if (best.epoch == expected.epoch && best.value == expected.value) return;
  throw RunError(fmt::format("{} has {} {} of epoch {}, expected {} of epoch {}: it is of another epoch or run",
                             quoted(file), expected.metric, best.value, best.epoch, expected.value, expected.epoch));
}

ResumePoint find_resume_point(const RunFolder& folder, const config::Config& recorded, const config::Config& asked,
                              const ResumeTerms& terms) {
  for (const std::string& key : terms.allowed_keys) check_known(key, recorded, asked);
  // It is added to when much else has changed: its damage is told now.
  const nlohmann::ordered_json provenance = read_provenance(folder.provenance());
  ResumePoint point;
  const fs::path file = folder.last_checkpoint();
  const bool has_checkpoint = fs::exists(file);
  if (has_checkpoint) point.checkpoint = load_checkpoint(file);
  const config::Config wanted = with_fitted_defaults(
      recorded, asked, recorded_fitted_keys(provenance, has_checkpoint ? &*point.checkpoint : nullptr));
  if (!has_checkpoint) {
    check_not_begun(folder);
    point.changes = config_changes(recorded.to_yaml(), wanted);
    compare_steps(processes_of(provenance), wanted, terms.processes, point.changes);
    check_changes(point.changes, wanted, terms, folder.config(), 0);
    return point;
  }
  point.state = read_state(*point.checkpoint);
  point.changes = config_changes(point.checkpoint->text("config"), wanted);
  compare_steps(processes_of(*point.checkpoint), wanted, terms.processes, point.changes);
  check_changes(point.changes, wanted, terms, file, point.state.step);
  check_epochs(wanted, point.state);
  check_epoch(point);
  // Before anything is opened that would cut or rewrite it.
  const fs::path log = folder.metrics_jsonl();
  if (const std::string problem = point.checkpoint->log_problem(log); !problem.empty()) {
    throw RunError(fmt::format("{} {}; {} goes with it as it was: put it back, or start a new run", quoted(log),
                               problem, point.checkpoint->place()));
  }
  forget_lost_checkpoints(folder, wanted, terms, point);
  point.is_finished = point.state.epoch == wanted.get<int64_t>("train.epochs") &&
                      RunFolder::has_results(folder.path()) && fs::exists(folder.results_text());
  return point;
}

}  // namespace settrain
