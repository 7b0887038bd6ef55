#include "src/engine/training.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <utility>

#include "models/model.h"
#include "models/named_tensors.h"
#include "src/core/human.h"
#include "src/core/interrupt.h"
#include "src/core/log.h"
#include "src/core/streams.h"
#include "src/engine/non_finite.h"
#include "src/run/checkpoint.h"

namespace settrain {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::vector<std::pair<std::string, at::Tensor>> trainable(const Model& model) {
  std::vector<std::pair<std::string, at::Tensor>> parameters;
  for (const auto& item : model.named_parameters()) parameters.emplace_back(item.key(), item.value());
  return parameters;
}

}  // namespace

Training::Training(Experiment& run, RunFolder& folder)
    : run_(run),
      folder_(folder),
      loader_(training_loader(run.dataset, run.loader, static_cast<uint64_t>(run.general.seed), run.device.is_cuda())),
      length_{run.train.epochs, (loader_.batches_per_epoch() + run.train.accumulate - 1) / run.train.accumulate},
      schedule_(make_schedule(run.config, length_)),
      optimizer_(trainable(*run.model), run.config.read<SgdOptions>("optimizer")),
      selection_(run.general.select),
      metrics_(folder.metrics_jsonl(), folder.metrics_csv()),
      tensorboard_(folder.tensorboard()) {}

int Training::train() {
  save(folder_.last_checkpoint(), 0);
  for (int64_t epoch = 0; epoch < length_.epochs; ++epoch) {
    const EpochTotals totals = train_epoch(epoch);
    if (interrupted()) {
      save(folder_.last_checkpoint(), epoch);
      log::warning(fmt::format("[train] stopped by a signal in epoch {} after step {}; {} holds the weights", epoch + 1,
                               step_, folder_.last_checkpoint().string()));
      return interrupted();
    }
    if (epoch == 0) warn_if_stalled();
    end_epoch(epoch + 1, totals);
  }
  return interrupted();
}

Training::EpochTotals Training::train_epoch(int64_t epoch) {
  EpochTotals totals;
  const auto start = Clock::now();
  loader_.start_epoch(epoch);
  while (!interrupted()) {
    std::vector<Batch> batches;
    for (Batch batch; std::ssize(batches) < run_.train.accumulate && loader_.next(batch);)
      batches.push_back(std::move(batch));
    if (batches.empty()) break;
    const StepResult result = train_one_step(std::move(batches));
    totals.sum.loss_sum += result.loss_sum;
    totals.sum.correct += result.correct;
    totals.sum.count += result.count;
    if (epoch == 0) first_epoch_losses_.push_back(result.loss_sum / static_cast<double>(result.count));
    show_progress(epoch, totals);
  }
  bar_.hide();
  totals.seconds = seconds_since(start);
  return totals;
}

StepResult Training::train_one_step(std::vector<Batch> batches) {
  const double lr = run_.config.get<double>("optimizer.lr") * schedule_->factor(step_);
  const StepSettings settings{static_cast<uint64_t>(run_.general.seed), step_, lr, run_.train.clip_norm};
  const StepResult result = train_step(*run_.model, *run_.loss, optimizer_, batches, run_.device, settings);
  ++step_;
  return result;
}

void Training::show_progress(int64_t epoch, const EpochTotals& totals) {
  const auto count = static_cast<double>(totals.sum.count);
  Progress progress;
  progress.stage = fmt::format("[train] epoch {}/{}", epoch + 1, length_.epochs);
  progress.done = totals.sum.count;
  progress.total = std::min(loader_.size(), loader_.batches_per_epoch() * run_.loader.batch_size);  // drop_last
  progress.after = (length_.epochs - epoch - 1) * progress.total;
  progress.figures = fmt::format("loss {:.4f}  top1 {:.4f}", totals.sum.loss_sum / count,
                                 static_cast<double>(totals.sum.correct) / count);
  bar_.update(progress);
}

// A loss that moves nothing for a whole epoch is most often a setting, and the user should not have to wait for the
// last epoch.
void Training::warn_if_stalled() const {
  constexpr double kLeastFall = 0.02;
  const size_t tenth = first_epoch_losses_.size() / 10;
  if (tenth == 0) return;
  const auto first = first_epoch_losses_.begin(), last = first_epoch_losses_.end();
  const auto count = static_cast<double>(tenth);
  const double before = std::accumulate(first, first + static_cast<ptrdiff_t>(tenth), 0.0) / count;
  const double after = std::accumulate(last - static_cast<ptrdiff_t>(tenth), last, 0.0) / count;
  if (after <= (1 - kLeastFall) * before) return;
  const std::string& advice = run_.stall_advice;
  log::warning(fmt::format(
      "[train] over the first epoch the loss hardly fell: {:.4f} in its first tenth, {:.4f} in its last. {}", before,
      after, advice.empty() ? "Try another optimizer.lr or a schedule.warmup_epochs." : advice));
}

// A metric that has no value, such as the accuracy of few-shot classes where there are none, selects nothing.
void Training::warn_if_undefined(int64_t epoch) const {
  if (epoch > run_.eval.every) return;  // said once
  for (const BestEpoch& best : selection_.best()) {
    if (best.epoch == 0)
      log::warning("[train] " + best.metric + " of `select` has no value on this data; no checkpoint is kept for it");
  }
}

void Training::end_epoch(int64_t epoch, const EpochTotals& totals) {
  // The last step's update has not been through a loss yet, and must not replace a good checkpoint.
  check_finite(*run_.model, step_);
  const auto count = static_cast<double>(totals.sum.count);
  const double loss = totals.sum.loss_sum / count, top1 = static_cast<double>(totals.sum.correct) / count;
  MetricsRow row{step_, epoch, {{"train/loss", loss}, {"train/top1", top1}}};
  row.values.emplace_back("train/lr", run_.config.get<double>("optimizer.lr") * schedule_->factor(step_ - 1));
  std::string line = fmt::format("[train] epoch {}/{}: loss {:.4f}, top1 {:.4f}", epoch, length_.epochs, loss, top1);

  std::vector<size_t> better;
  if (epoch % run_.eval.every == 0 || epoch == length_.epochs) {
    const auto results = evaluate_splits(run_, {"val"}, bar_);
    const auto& values = results.front().result.values;
    for (const MetricValue& value : values) row.values.emplace_back("val/" + value.name, value.value);
    better = selection_.update(epoch, values);
    warn_if_undefined(epoch);
    line += validation_summary(values, better);
  }
  row.values.emplace_back("time/epoch_s", totals.seconds);
  row.values.emplace_back("time/images_per_s", count / totals.seconds);
  metrics_.append(row);
  tensorboard_.add_scalars(step_, row.values);

  save(folder_.last_checkpoint(), epoch);
  for (const size_t i : better) save(folder_.best_checkpoint(selection_.best()[i].metric), epoch);
  log::info(line + fmt::format("; {:.0f} images/s, {}", count / totals.seconds, format_duration(totals.seconds)));
}

// The metrics that the run selects on, or the first one where there are none.
std::string Training::validation_summary(const std::vector<MetricValue>& values,
                                         const std::vector<size_t>& better) const {
  std::string text;
  for (const MetricValue& value : values) {
    for (size_t i = 0; i < selection_.best().size(); ++i) {
      if (selection_.best()[i].metric != "val/" + value.name) continue;
      const bool is_best = std::find(better.begin(), better.end(), i) != better.end();
      text += fmt::format(", val/{} {:.4f}{}", value.name, value.value, is_best ? " (best)" : "");
    }
  }
  return text.empty() && !values.empty() ? fmt::format(", val/{} {:.4f}", values[0].name, values[0].value) : text;
}

void Training::save(const std::filesystem::path& file, int64_t epoch) {
  Checkpoint checkpoint;
  checkpoint.add("model.", state_dict(*run_.model));
  checkpoint.add("optimizer.momentum.", optimizer_.momentum());
  checkpoint.add("loss.", run_.loss->state());
  checkpoint.set_integer("state.epoch", epoch);
  checkpoint.set_integer("state.step", step_);
  checkpoint.set_integer("state.rng", kRngVersion);
  checkpoint.metadata["config"] = run_.config.to_yaml();
  checkpoint.metadata["logs." + folder_.metrics_jsonl().filename().string()] = std::to_string(metrics_.offset());
  checkpoint.metadata["logs." + folder_.tensorboard().filename().string()] = std::to_string(tensorboard_.offset());
  save_checkpoint(file, checkpoint);
}

}  // namespace settrain
