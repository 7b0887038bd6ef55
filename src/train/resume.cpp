#include "src/train/resume.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "src/core/digest.h"
#include "src/core/error.h"
#include "src/core/log.h"
#include "src/core/random.h"
#include "src/core/text.h"
#include "src/train/provenance.h"
#include "src/train/run_card.h"
#include "src/train/selection.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPretrainedDigest = "model.pretrained.sha256";
constexpr const char* kProcesses = "processes";
constexpr const char* kAccumulate = "train.accumulate";

std::string quoted(const fs::path& file) {
  return fmt::format("'{}'", file.string());
}

// What the last bits of a run depend on, besides its config and data.
TextMap machine(const Experiment& run) {
  static const std::string program = sha256_of_file("/proc/self/exe");
  TextMap texts{{"machine.program", program},
                {"machine.instruction_set", at::get_cpu_capability()},
                {"machine.threads", std::to_string(at::get_num_threads())},
                {"machine.device", run.device.is_cuda() ? "cuda" : "cpu"}};
  if (run.device.is_cuda()) texts["machine.gpu"] = describe_gpu(run.device).dump();
  return texts;
}

TextMap data(const Experiment& run) {
  return {{"data.digest", run.dataset.digest}, {"data.labels", run.label_noise.digest}};
}

// Kept for the record: the weights themselves are in the checkpoint.
TextMap first_weights(const Experiment& run) {
  if (run.pretrained_digest.empty()) return {};
  return {{kPretrainedDigest, run.pretrained_digest}};
}

TextMap thresholds(const Experiment& run) {
  return {{"data.thresholds", run.threshold_digest}};
}

// A line for each entry that the checkpoint has otherwise.
std::string differing(const TextMap& now, const Checkpoint& checkpoint) {
  std::string lines;
  for (const auto& [name, value] : now) {
    const auto found = checkpoint.metadata.find(name);
    const std::string before = found == checkpoint.metadata.end() ? "" : found->second;
    if (before != value) {
      lines += fmt::format("\n  {}: {} there, {} now", name, before.empty() ? "none" : before,
                           value.empty() ? "none" : value);
    }
  }
  return lines;
}

void refuse_other_data(const std::string& lines, const Checkpoint& checkpoint) {
  if (lines.empty()) return;
  throw RunError(fmt::format("{} was trained on other data:{}\nTake the data as they were, or start a new run",
                             quoted(checkpoint.file), lines));
}

// What `now` says otherwise than an earlier record. A key that the record lacks was added by a later version of the
// program, which at its default does what it did, or belongs to another variant, whose name differs too.
std::vector<config::Difference> changes(const std::string& record, const config::Config& now) {
  std::vector<config::Difference> all = config::differences(record, now.to_yaml());
  std::erase_if(all, [&now](const config::Difference& change) {
    return change.before.empty() && now.at(change.path).value == now.at(change.path).key.default_value;
  });
  return all;
}

// Of the network itself: weights have their shapes, and the best checkpoints were chosen in one precision.
bool is_of_network(const std::string& path) {
  return path.starts_with("model.") || path == "train.precision";
}

bool is_free(const config::Config& config, const std::string& path) {
  return path == "train.epochs" || (config.has(path) && config.at(path).key.is_free);
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

// Micro-batches of a step are what counts: those of one process times the processes. `before`: how many there were.
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

int64_t processes_of(const Checkpoint& checkpoint) {
  const auto found = checkpoint.metadata.find(kProcesses);
  return found == checkpoint.metadata.end() ? 1 : std::stoll(found->second);
}

// Of a run without a checkpoint: those that config.yaml was last written for.
int64_t processes_of(const nlohmann::ordered_json& provenance) {
  if (!provenance.is_object()) return 1;
  const nlohmann::ordered_json* last = &provenance;
  if (const auto resumed = provenance.find("resumed"); resumed != provenance.end() && !resumed->empty())
    last = &resumed->back();
  const auto found = last->find(kProcesses);
  return found == last->end() ? 1 : found->at("count").get<int64_t>();
}

void check_changes(const std::vector<config::Difference>& changes, const config::Config& wanted,
                   const ResumeTerms& terms, const fs::path& made_by) {
  const auto or_none = [](const std::string& value) { return value.empty() ? "no such key" : value; };
  std::string lines, allow;
  bool any_is_fixed = false;
  for (const auto& [path, before, after] : changes) {
    const bool is_fixed = is_of_network(path) || path == "train.ema_decay" ||
                          path == "optimizer.name";  // the checkpoint holds what they keep
    const bool allowed = std::count(terms.allowed_keys.begin(), terms.allowed_keys.end(), path) > 0;
    if ((allowed && !is_fixed) || is_free(wanted, path)) continue;
    lines += fmt::format("\n  {}: {} there, {} now{}", path, or_none(before), or_none(after),
                         is_fixed ? " (cannot change within a run)" : "");
    any_is_fixed |= is_fixed;
    allow += " --allow " + path;
  }
  if (lines.empty()) return;
  allow = any_is_fixed ? "" : "; or, where the change is meant for the rest of this one, add" + allow;
  throw ConfigError(
      fmt::format("{} was made with another configuration:{}\nStart a new run{}", quoted(made_by), lines, allow));
}

void check_epochs(const config::Config& wanted, const TrainingState& state) {
  const int64_t begun = state.epoch + (state.batch > 0 ? 1 : 0);
  if (wanted.get<int64_t>("train.epochs") >= begun) return;
  wanted.fail("train.epochs", fmt::format("the run has completed {} epochs{}", state.epoch,
                                          state.batch > 0 ? " and begun another" : ""));
}

// Sums over an epoch are of what was measured from its start; in another order, some of its images would come twice and
// others never.
void check_epoch(const ResumePoint& point) {
  if (point.state.batch == 0) return;
  for (const auto& [path, before, after] : point.changes) {
    constexpr std::array kOfAnEpoch{"train.top_k", "train.gradient_nonzeros", "data.sampler", "seed"};
    if (std::ranges::count(kOfAnEpoch, path) == 0) continue;
    throw RunError(fmt::format(
        "{} stands within an epoch, over which {} cannot change: leave the key as it was, or change it where the run "
        "has ended an epoch (--set train.epochs={})",
        quoted(point.checkpoint->file), path, point.state.epoch + 1));
  }
}

// Before anything is opened that would cut or rewrite it.
void check_log(const fs::path& log, const Checkpoint& checkpoint) {
  const std::string problem = checkpoint.log_problem(log);
  if (problem.empty()) return;
  throw RunError(fmt::format("{} {}; {} goes with it as it was: put it back, or start a new run", quoted(log), problem,
                             quoted(checkpoint.file)));
}

// Its own record of the metric tells a checkpoint of another epoch or run.
void check_is_best(const Checkpoint& checkpoint, const BestEpoch& expected) {
  Selection selection({expected.metric});
  selection.restore(checkpoint);
  const BestEpoch& best = selection.best().front();
  if (best.epoch == expected.epoch && best.value == expected.value) return;
  throw RunError(fmt::format("{} has {} {} of epoch {}, expected {} of epoch {}: it is of another epoch or run",
                             quoted(checkpoint.file), expected.metric, best.value, best.epoch, expected.value,
                             expected.epoch));
}

// The metrics whose best checkpoint cannot be had any more. That of the epoch that the last checkpoint ends can.
std::vector<std::string> lost_metrics(const RunFolder& folder, const config::Config& wanted, const ResumePoint& point,
                                      std::string& problems) {
  Selection selection(wanted.get<config::Texts>("select"));
  selection.restore(*point.checkpoint);
  std::vector<std::string> lost;
  for (const BestEpoch& best : selection.best()) {
    if (best.epoch == 0 || (best.epoch == point.state.epoch && point.state.batch == 0)) continue;
    try {
      check_is_best(load_checkpoint(folder.selected_checkpoint(best.metric)), best);
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

void add_identity(const Experiment& run, Checkpoint& checkpoint) {
  checkpoint.set_integer("state.rng", kRngVersion);
  checkpoint.metadata["config"] = run.config.to_yaml();
  checkpoint.metadata[kProcesses] = std::to_string(run.group->world_size());
  checkpoint.metadata["card"] = to_text(card_of(run));
  checkpoint.metadata.merge(machine(run));
  checkpoint.metadata.merge(data(run));
  checkpoint.metadata.merge(thresholds(run));
  checkpoint.metadata.merge(first_weights(run));
}

void restore_first_weights(const Checkpoint& checkpoint, Experiment& run) {
  const auto found = checkpoint.metadata.find(kPretrainedDigest);
  if (found != checkpoint.metadata.end()) run.pretrained_digest = found->second;
}

ResumePoint find_resume_point(const RunFolder& folder, const config::Config& recorded, const config::Config& wanted,
                              const ResumeTerms& terms) {
  for (const std::string& key : terms.allowed_keys) check_known(key, recorded, wanted);
  // It is added to when much else has changed: its damage is told now.
  const nlohmann::ordered_json provenance = read_provenance(folder.provenance());
  ResumePoint point;
  const fs::path file = folder.last_checkpoint();
  if (!fs::exists(file)) {
    check_not_begun(folder);
    point.changes = changes(recorded.to_yaml(), wanted);
    compare_steps(processes_of(provenance), wanted, terms.processes, point.changes);
    check_changes(point.changes, wanted, terms, folder.config());
    return point;
  }
  point.checkpoint = load_checkpoint(file);
  point.state = read_state(*point.checkpoint);
  point.changes = changes(point.checkpoint->text("config"), wanted);
  compare_steps(processes_of(*point.checkpoint), wanted, terms.processes, point.changes);
  check_changes(point.changes, wanted, terms, file);
  check_epochs(wanted, point.state);
  check_epoch(point);
  check_log(folder.metrics_jsonl(), *point.checkpoint);
  forget_lost_checkpoints(folder, wanted, terms, point);
  point.is_finished = point.state.epoch == wanted.get<int64_t>("train.epochs") &&
                      RunFolder::has_results(folder.path()) && fs::exists(folder.results_text());
  return point;
}

void check_same_model(const Experiment& run, const Checkpoint& checkpoint) {
  std::string lines;
  for (const auto& [path, before, after] : changes(checkpoint.text("config"), run.config)) {
    if (is_of_network(path) || path == "data.normalisation")
      lines += fmt::format("\n  {}: {} there, {} now", path, before, after);
  }
  if (lines.empty()) return;
  throw RunError(
      fmt::format("{} was trained with another model or input:{}\nThe run's config.yaml was changed; put it back",
                  quoted(checkpoint.file), lines));
}

void check_same_data(const Experiment& run, const Checkpoint& checkpoint) {
  refuse_other_data(differing(data(run), checkpoint), checkpoint);
}

void check_same_identity(const Experiment& run, const Checkpoint& checkpoint, const ResumeTerms& terms) {
  const std::string file = quoted(checkpoint.file);
  const int64_t rng = checkpoint.integer("state.rng");
  if (rng != kRngVersion) {
    throw RunError(fmt::format(
        "{} was made with version {} of the random numbers, this program has version {}; go on with the program that "
        "made it",
        file, rng, kRngVersion));
  }
  refuse_other_data(differing(data(run), checkpoint) + differing(thresholds(run), checkpoint), checkpoint);
  const std::string lines = differing(machine(run), checkpoint);
  if (lines.empty()) return;
  if (!terms.allow_inexact) {
    throw RunError(fmt::format(
        "{} was made under other circumstances, and the run would not end with the same bits:{}\nGo on as before "
        "(--device, --set run.threads=N), or all the same by --allow-inexact",
        file, lines));
  }
  log::warning(fmt::format("[run] going on inexactly from {}:{}", file, lines));
}

}  // namespace settrain
