#include "src/train/training.h"

#include <ATen/ops/tensor.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "models/model.h"
#include "models/named_tensors.h"
#include "src/core/files.h"
#include "src/core/interrupt.h"
#include "src/core/log.h"
#include "src/core/text.h"
#include "src/train/evaluation.h"
#include "src/train/feature_cache.h"
#include "src/train/peak_memory.h"

namespace settrain {

Training::Training(Experiment& run, RunFolder* folder)
    : run_(run),
      loader_(std::in_place, run),
      stepper_(run, loader_->steps_per_epoch()),
      selection_(run.general.select),
      bar_(folder ? standard_progress_output() : no_progress_output()) {
  if (folder) files_.emplace(*folder);
}

// The body has its last weights by now, and the run's folder its first checkpoint.
void Training::use_cached_features() {
  if (state_.epoch >= stepper_.length().epochs) return;
  cache_features(run_, files_ ? files_->folder.path() : std::filesystem::path(), bar_);
  if (!run_.loader.features.empty()) loader_.emplace(run_);
}

void Training::train() {
  save_last();
  use_cached_features();
  try {
    while (state_.epoch < stepper_.length().epochs) train_epoch();
  } catch (const Interrupted&) {
    bar_.hide();
    save_last();
    if (files_) log::warning(fmt::format("[train] stopped by a signal at step {}", state_.step));
    throw;
  }
  drop_rounded_features(run_);
  if (files_) remove_cached_features(files_->folder.path());
}

void Training::train_epoch() {
  const auto start = Clock::now();
  const double seconds_before = state_.seconds;
  const auto measure_time = [&] {
    state_.seconds = seconds_before + std::chrono::duration<double>(Clock::now() - start).count();
  };
  loader_->start_epoch(state_.epoch, state_.batch);
  for (;;) {
    const StepBatches batches = loader_->next();
    if (batches.count == 0) break;
    take_step(batches);
    measure_time();
    show_progress();
    answer_requests();
  }
  settle_step();
  measure_time();
  stepper_.end_epoch();
  bar_.hide();
  gather_skipped_images(*run_.group, *run_.loader.skipped);
  if (state_.sum.count == 0) throw_untrained();
  warn_of_lost_classes();

  const int64_t epoch = state_.epoch + 1, epochs = stepper_.length().epochs;
  MetricsRow row = training_metrics();
  std::string line = fmt::format("[train] epoch {}/{}: loss {:.4f}, top1 {:.4f}", epoch, epochs, row.values[0].second,
                                 row.values[1].second);
  warn_if_stalled(row.values[1].second);
  if (epoch % run_.eval.every == 0 || epoch == epochs) {
    const std::vector<MetricValue> values = evaluate();
    for (const MetricValue& value : values) row.values.emplace_back(value.name, value.value);
    const std::vector<size_t> better = selection_.update(epoch, values);
    warn_if_undefined(epoch);
    line += evaluation_summary(values, better);
  }
  const double seconds = state_.seconds, images_per_second = static_cast<double>(state_.sum.count) / seconds;
  row.values.emplace_back("time/epoch_s", seconds);
  row.values.emplace_back("time/images_per_s", images_per_second);
  row.values.emplace_back("time/peak_memory_bytes", static_cast<double>(peak_memory().host));
  run_.group->first_does([&] {
    files_->metrics.append(row);
    files_->tensorboard.add_scalars(row.step, row.values);
  });

  state_.epoch = epoch;
  state_.batch = 0;
  state_.sum = {};
  state_.seconds = 0;
  save_last();
  save_best();
  log::info(line + fmt::format("; {:.0f} images/s, {}", images_per_second, format_duration(seconds)));
}

// The numbers of a step are read when the next one is under way, so that a GPU never waits for the CPU.
void Training::take_step(const StepBatches& batches) {
  LaunchedStep step = stepper_.take(state_.step, batches);
  settle_step();
  under_way_ = std::move(step);
  state_.batch += batches.count;
  ++state_.step;
}

// Adds the numbers of the step under way, if there is one, to the state.
void Training::settle_step() {
  if (!under_way_) return;
  const StepResult result = std::exchange(under_way_, std::nullopt)->result();
  state_.sum += result;
  if (state_.epoch > 0) return;
  const int64_t step = state_.step - 1;
  const int64_t steps = stepper_.length().steps_per_epoch, tenth = steps / 10;
  // A step may have no readable image: it counts as the mean of the steps before it in its tenth, NaN without any.
  const auto add_to = [&](double& sum, int64_t steps_before) {
    sum += result.count > 0 ? result.loss_sum / static_cast<double>(result.count)
                            : sum / static_cast<double>(steps_before);
  };
  if (step < tenth) add_to(state_.early_loss, step);
  if (step >= steps - tenth) add_to(state_.late_loss, step - (steps - tenth));
}

// Every process comes to the same end of the epoch.
void Training::throw_untrained() const {
  const std::string problem =
      "no training batch of the epoch could be used, since too few of its images can be read; the log names them";
  if (run_.group->world_size() > 1) throw AgreedError(problem);
  throw DataError(problem);
}

// The row of the epoch that ends, with train/loss and train/top1 first.
MetricsRow Training::training_metrics() const {
  const StepResult& sum = state_.sum;
  const auto count = static_cast<double>(sum.count);
  MetricsRow row{state_.step,
                 state_.epoch + 1,
                 {{"train/loss", sum.loss_sum / count}, {"train/top1", static_cast<double>(sum.correct) / count}}};
  const std::vector<std::string>& measured = stepper_.metrics().names();
  for (size_t i = 0; i < measured.size(); ++i) row.values.emplace_back("train/" + measured[i], sum.measured[i] / count);
  row.values.emplace_back("train/lr", stepper_.lr(state_.step - 1));
  for (const config::Curve& curve : run_.config.curves("loss")) {
    row.values.emplace_back("train/" + curve.path, curve.at(state_.epoch, run_.train.epochs));
  }
  return row;
}

// Named with their splits: "val/top5".
std::vector<MetricValue> Training::evaluate() {
  std::optional<WeightAverage::InPlace> averaged;
  if (stepper_.average()) averaged.emplace(*stepper_.average());
  std::vector<MetricValue> values;
  for (const SplitResult& split : evaluate_splits(run_, run_.eval.during_training, ViewUse::kEvaluation, bar_)) {
    for (MetricValue value : split.result.values) {
      value.name = split.split + "/" + value.name;
      values.push_back(std::move(value));
    }
  }
  return values;
}

// The metrics that the run selects on, or the first one where there are none.
std::string Training::evaluation_summary(const std::vector<MetricValue>& values,
                                         const std::vector<size_t>& better) const {
  std::string text;
  for (const MetricValue& value : values) {
    for (size_t i = 0; i < selection_.best().size(); ++i) {
      if (selection_.best()[i].metric != value.name) continue;
      const bool is_best = std::find(better.begin(), better.end(), i) != better.end();
      text += fmt::format(", {} {:.4f}{}", value.name, value.value, is_best ? " (best)" : "");
    }
  }
  return text.empty() && !values.empty() ? fmt::format(", {} {:.4f}", values[0].name, values[0].value) : text;
}

void Training::save_last() {
  settle_step();
  // The newest update has not been through a loss yet, and must not replace a good checkpoint.
  check_finite(*run_.model, *run_.loss, state_.step);
  run_.group->first_does([this] { write_checkpoint(); });
  last_save_ = Clock::now();
}

// Links the best checkpoints to the last one, which save_last() has just written. That one says which epochs are the
// best: where a process is killed in between, link_missing_best() finds it there.
void Training::save_best() {
  run_.group->first_does([this] {
    const RunFolder& folder = files_->folder;
    for (const BestEpoch& best : selection_.best()) {
      if (best.epoch == state_.epoch) {
        link_file_atomically(folder.last_checkpoint(), folder.selected_checkpoint(best.metric));
      }
    }
  });
}

// Links the best checkpoints that a killed process had no time to link. The others stay as they are: they record the
// data that chose them, and rules may be calibrated for them.
void Training::link_missing_best(const TrainingState& state) {
  if (state.batch > 0) return;
  const RunFolder& folder = files_->folder;
  for (const BestEpoch& best : selection_.best()) {
    if (best.epoch == 0 || best.epoch != state.epoch) continue;
    const std::filesystem::path file = folder.selected_checkpoint(best.metric);
    try {
      check_is_best(file, best);
    } catch (const RunError&) {
      link_file_atomically(folder.last_checkpoint(), file);
    }
  }
}

// Forgets the best epochs by metrics of images that are others by now, since values on these do not compare. What was
// best stays under a name of its own. With no epoch left there is nothing else to choose.
void Training::restart_selection(const TrainingState& state) {
  if (state.epoch >= stepper_.length().epochs) return;
  const RunFolder& folder = files_->folder;
  const std::vector<BestEpoch> before = selection_.best();
  for (const BestEpoch& best : before) {
    if (best.epoch == 0) continue;
    const std::set<std::string> splits = splits_behind(best.metric, run_.config, run_.dataset.calibration.size() > 0);
    const auto is_behind = [&](const auto& changed) { return changed.first.empty() || splits.contains(changed.first); };
    if (!std::ranges::any_of(run_.changed_splits, is_behind)) continue;
    const std::filesystem::path file = folder.selected_checkpoint(best.metric);
    const std::filesystem::path kept =
        file.parent_path() / fmt::format("{}-epoch-{}.safetensors", file.stem().string(), best.epoch);
    link_file_atomically(file, kept);
    selection_.restart(best.metric);
    log::warning(fmt::format(
        "[train] `select` begins anew for {}, whose images have changed: the best of the epochs to come is kept; that "
        "of the earlier images, of epoch {} ({:.4f}), stays as '{}'",
        best.metric, best.epoch, best.value, kept.string()));
  }
}

bool Training::checkpoint_is_due() const {
  const TrainOptions& options = run_.train;
  if (options.checkpoint_steps > 0 && state_.step % options.checkpoint_steps == 0) return true;
  const std::chrono::duration<double, std::ratio<60>> minutes = Clock::now() - last_save_;
  return options.checkpoint_minutes > 0 && minutes.count() >= options.checkpoint_minutes;
}

// Any process may have been told to stop; the first one's clock says when a checkpoint is due.
void Training::answer_requests() {
  int64_t signal = interrupted();
  bool is_due = checkpoint_is_due();
  if (run_.group->world_size() > 1) {
    const at::Tensor requests = run_.group->all_gather(at::tensor({signal, int64_t{is_due}}));
    is_due = requests[0][1].item<int64_t>() != 0;
    signal = requests.select(1, 0).max().item<int64_t>();
  }
  if (is_due) save_last();
  if (signal != 0) throw Interrupted(static_cast<int>(signal));
}

void Training::show_progress() {
  const StepResult& sum = state_.sum;
  if (sum.count == 0) return;  // the first step is still under way
  const int64_t epochs = stepper_.length().epochs, samples = loader_->samples_per_epoch();
  const auto count = static_cast<double>(sum.count);
  bar_.update({.stage = fmt::format("[train] epoch {}/{}", state_.epoch + 1, epochs),
               .done = sum.count,
               .total = samples,
               .after = (epochs - state_.epoch - 1) * samples,
               .figures = fmt::format("loss {:.4f}  top1 {:.4f}", sum.loss_sum / count,
                                      static_cast<double>(sum.correct) / count)});
}

// Images that cannot be read are found as they come. Losses and groups of classes have counted them before.
void Training::warn_of_lost_classes() {
  const int64_t skipped = run_.loader.skipped->count();
  if (!files_ || has_warned_of_lost_classes_ || std::exchange(skipped_before_, skipped) == skipped) return;
  const Split& train = run_.dataset.train;
  std::vector<int64_t> left(static_cast<size_t>(run_.dataset.num_classes()));
  for (int64_t i = 0; i < train.size(); ++i) {
    const auto place = static_cast<size_t>(i);
    const bool is_lost = run_.loader.skipped->contains(train.images->describe(train.ids[place]));
    left[static_cast<size_t>(train.labels[place])] += is_lost ? 0 : 1;
  }
  std::vector<std::string> lost;
  for (size_t c = 0; c < left.size(); ++c) {
    if (left[c] == 0 && run_.class_facts.train_counts[c] > 0) lost.push_back(in_quotes(run_.dataset.class_names[c]));
  }
  if (lost.empty()) return;
  has_warned_of_lost_classes_ = true;
  log::warning(fmt::format(
      "[data] no training image of the class{} {} could be read. The counts, by which losses weigh classes and metrics "
      "group them, are still those of the files",
      lost.size() == 1 ? "" : "es", join_first(lost, 5)));
}

// A training that moves nothing is most often a setting, and the user should not have to wait for the last epoch. Over
// the first epoch the loss must fall, or the top-1 accuracy `top1` on training images must be above that of an answer
// that is always the largest class; after every epoch it must be above that of a guess, and not by chance.
void Training::warn_if_stalled(double top1) {
  if (!files_ || has_warned_of_stall_) return;  // said once
  constexpr double kLeastFall = 0.02, kLeastTop1 = 1.1;
  constexpr int64_t kLeastSteps = 50;  // an accuracy after fewer means little
  const int64_t tenth = stepper_.length().steps_per_epoch / 10;
  const double guess = 1 / static_cast<double>(run_.dataset.num_classes());
  const std::vector<int64_t>& counts = run_.class_facts.train_counts;
  const double largest =
      counts.empty() ? guess
                     : static_cast<double>(std::ranges::max(counts)) / static_cast<double>(run_.dataset.train.size());
  const double deviation = std::sqrt(guess * (1 - guess) / static_cast<double>(run_.dataset.train.size()));
  std::string what;
  if (state_.epoch == 0 && tenth > 0 && state_.late_loss > (1 - kLeastFall) * state_.early_loss &&
      top1 < kLeastTop1 * largest) {
    what = fmt::format("over the first epoch the loss hardly fell: {:.4f} in its first tenth, {:.4f} in its last",
                       state_.early_loss / static_cast<double>(tenth), state_.late_loss / static_cast<double>(tenth));
  } else if (state_.step >= kLeastSteps && run_.dataset.train.label_sets.empty() &&
             top1 < std::min(kLeastTop1 * guess, guess + 3 * deviation)) {
    what = fmt::format(
        "after epoch {} the top-1 accuracy on the training images is {:.4f}, and a guess among the {} "
        "classes has {:.4f}",
        state_.epoch + 1, top1, run_.dataset.num_classes(), guess);
  }
  if (what.empty()) return;
  has_warned_of_stall_ = true;
  const std::string& advice = run_.stall_advice;
  log::warning(fmt::format("[train] {}. {}", what,
                           advice.empty() ? "Try another optimizer.lr or a schedule.warmup_epochs." : advice));
}

// A metric that has no value, such as the accuracy of few-shot classes where there are none, selects nothing.
void Training::warn_if_undefined(int64_t epoch) const {
  if (epoch > run_.eval.every || !files_) return;  // said once
  for (const BestEpoch& best : selection_.best()) {
    if (best.epoch == 0)
      log::warning("[train] " + best.metric + " of `select` has no value on this data; no checkpoint is kept for it");
  }
}

void Training::restore(const Checkpoint* checkpoint) {
  run_.group->first_does([&] { read_checkpoint(*checkpoint); });
  share_state();
}

void Training::read_checkpoint(const Checkpoint& checkpoint) {
  auto& [folder, metrics, tensorboard] = *files_;
  const TrainingState state = read_state(checkpoint);
  const int64_t per_step = loader_->batches_per_step();
  const int64_t steps_of_epoch = (state.batch + per_step - 1) / per_step;
  if (state.batch > loader_->batches_per_epoch() ||
      state.step != state.epoch * stepper_.length().steps_per_epoch + steps_of_epoch) {
    throw RunError(fmt::format(
        "'{}' stands at step {} after {} epochs and {} batches, which {} batches an epoch, {} a step, do not lead to: "
        "data.batch_size, data.drop_last, train.accumulate and the training split can change only where an epoch keeps "
        "its number of steps",
        checkpoint.file.string(), state.step, state.epoch, state.batch, loader_->batches_per_epoch(), per_step));
  }
  checkpoint.copy_into("model.", state_dict(*run_.model));
  checkpoint.copy_into("optimizer.", stepper_.optimizer_state());
  if (stepper_.average()) checkpoint.copy_into("ema.", stepper_.average()->tensors());
  checkpoint.copy_into("loss.", run_.loss->state());
  selection_.restore(checkpoint);
  link_missing_best(state);
  restart_selection(state);
  take_over_beginning(checkpoint, run_);
  metrics.truncate_to(checkpoint.log_size(folder.metrics_jsonl()));
  if (checkpoint.log_problem(folder.tensorboard()).empty()) {
    tensorboard.truncate_to(checkpoint.log_size(folder.tensorboard()));
  } else {  // written again from the log
    tensorboard.clear();
    for (const MetricsRow& row : metrics.rows()) tensorboard.add_scalars(row.step, row.values);
  }
  state_ = state;
}

void Training::write_checkpoint() {
  auto& [folder, metrics, tensorboard] = *files_;
  Checkpoint checkpoint;
  checkpoint.add("model.", state_dict(*run_.model));
  checkpoint.add("optimizer.", stepper_.optimizer_state());
  if (stepper_.average()) checkpoint.add("ema.", stepper_.average()->tensors());
  checkpoint.add("loss.", run_.loss->state());
  add_state(state_, checkpoint);
  selection_.add_to(checkpoint);
  add_identity(run_, checkpoint);
  checkpoint.add_log(folder.metrics_jsonl(), metrics.offset());
  checkpoint.add_log(folder.tensorboard(), tensorboard.offset());
  save_checkpoint(folder.last_checkpoint(), checkpoint);
}

// The other processes may not see the run's folder.
void Training::share_state() {
  if (run_.group->world_size() == 1) return;
  std::vector<at::Tensor> tensors;
  const auto add = [&tensors](const auto& named) {
    for (const auto& [name, tensor] : named) tensors.push_back(tensor);
  };
  add(state_dict(*run_.model));
  add(stepper_.optimizer_state());
  if (stepper_.average()) add(stepper_.average()->tensors());
  TrainingState state = state_;
  state.sum.measured.resize(stepper_.metrics().names().size());  // the same tensors in every process
  Checkpoint standing;
  add_state(state, standing);
  selection_.add_to(standing);
  add(standing.tensors);
  run_.group->broadcast(tensors);
  if (run_.group->is_first()) return;
  state_ = read_state(standing);
  selection_.restore(standing);
}

}  // namespace settrain
