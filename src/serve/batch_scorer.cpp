#include "src/serve/batch_scorer.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/isfinite.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "models/model.h"
#include "src/core/error.h"
#include "src/serve/http/http_server.h"
#include "src/train/evaluation.h"

namespace settrain {
namespace {

template <class Clock, class Rep, class Period>
typename Clock::time_point later(typename Clock::time_point time, std::chrono::duration<Rep, Period> by) {
  return time + std::chrono::duration_cast<typename Clock::duration>(by);
}

}  // namespace

BatchScorer::BatchScorer(const TrainedModel& model, const at::Tensor& views, const BatchOptions& options,
                         ServiceMetrics& metrics)
    : model_(model), options_(options), metrics_(metrics), views_(views.size(0)) {
  std::promise<void> is_ready;
  thread_ = std::thread([&] { work(views, is_ready); });
  try {
    is_ready.get_future().get();
  } catch (...) {
    thread_.join();
    throw;
  }
}

BatchScorer::~BatchScorer() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

BatchScorer::Places::Places(BatchScorer& scorer, int64_t images)
    : scorer_(scorer),
      images_(images),
      deadline_(later<Clock>(Clock::now(), std::chrono::duration<double>(scorer.options_.seconds))) {
  const std::lock_guard lock(scorer_.mutex_);
  if (scorer_.announced_images_ + scorer_.queued_images_ + images > scorer_.options_.most_waiting) {
    throw HttpError(503, "too many images wait for the model");
  }
  scorer_.announced_images_ += images;
  scorer_.show_waiting();
}

BatchScorer::Places::~Places() {
  const std::lock_guard lock(scorer_.mutex_);
  scorer_.announced_images_ -= images_;
  scorer_.show_waiting();
  scorer_.changed_.notify_all();
}

at::Tensor BatchScorer::Places::score(std::vector<at::Tensor> images) {
  std::future<at::Tensor> scores;
  {
    const std::lock_guard lock(scorer_.mutex_);
    scorer_.queue_.push_back({.images = std::move(images), .since = Clock::now(), .deadline = deadline_});
    scores = scorer_.queue_.back().scores.get_future();
    scorer_.queued_images_ += images_;
    scorer_.announced_images_ -= std::exchange(images_, 0);
    scorer_.changed_.notify_all();
  }
  return scores.get();
}

void BatchScorer::show_waiting() {
  metrics_.set_waiting_images(announced_images_ + queued_images_);
}

// Returns an empty batch when the scorer stops.
std::list<BatchScorer::Job> BatchScorer::next_batch() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
  if (queue_.empty()) return {};
  const std::chrono::duration<double, std::milli> window(options_.window_ms);
  changed_.wait_until(lock, later<Clock>(queue_.front().since, window),
                      [this] { return stopping_ || announced_images_ == 0 || queued_images_ >= options_.most_images; });
  std::list<Job> batch;
  int64_t images = 0;
  while (!queue_.empty()) {
    const int64_t count = std::ssize(queue_.front().images);
    if (!batch.empty() && images + count > options_.most_images) break;
    images += count;
    batch.splice(batch.end(), queue_, queue_.begin());  // cannot fail
  }
  queued_images_ -= images;
  show_waiting();
  return batch;
}

// Scores in parts where one request has more images than a batch.
at::Tensor BatchScorer::scores_of(const std::vector<at::Tensor>& images) const {
  std::vector<at::Tensor> scores;
  for (auto next = images.begin(); next != images.end();) {
    const auto end = next + std::min(images.end() - next, static_cast<std::ptrdiff_t>(options_.most_images));
    Batch batch;
    batch.images = at::cat(std::vector<at::Tensor>(next, end));
    batch.views = views_;
    scores.push_back(rule_scores(model_, score_batch(*model_.model, batch, model_.policy, model_.crop_average)));
    metrics_.add_batch(end - next);
    next = end;
  }
  return at::cat(scores);
}

// Each job gets its result or a problem.
void BatchScorer::score(std::list<Job>& batch) const {
  std::vector<at::Tensor> images;
  for (Job& job : batch) {
    if (Clock::now() > job.deadline) {
      job.problem = std::make_exception_ptr(
          HttpError(503, fmt::format("it took more than {} s to reach the model", options_.seconds)));
    } else {
      images.insert(images.end(), job.images.begin(), job.images.end());
    }
  }
  if (images.empty()) return;
  const at::Tensor scores = scores_of(images);
  int64_t first = 0;
  for (Job& job : batch) {
    if (job.problem) continue;
    job.result = scores.narrow(0, first, std::ssize(job.images));
    first += std::ssize(job.images);
    if (at::isfinite(job.result).all().item<bool>()) continue;
    job.problem = std::make_exception_ptr(NumericalError("the model's scores are not finite"));
  }
}

void BatchScorer::work(const at::Tensor& views, std::promise<void>& is_ready) {
  // Batches here have any size, and cuDNN would search for its fastest algorithms with each new one.
  at::globalContext().setBenchmarkCuDNN(false);
  at::init_num_threads();  // the number of compute threads is a setting of each thread
  const c10::InferenceMode inference;
  try {
    for (const int64_t images : {int64_t{1}, options_.most_images}) {
      Batch batch;
      batch.images = at::cat(std::vector<at::Tensor>(static_cast<size_t>(images), views));
      batch.views = views_;
      score_batch(*model_.model, batch, model_.policy, model_.crop_average);
    }
    is_ready.set_value();
  } catch (...) {
    is_ready.set_exception(std::current_exception());
    return;
  }
  for (std::list<Job> batch = next_batch(); !batch.empty(); batch = next_batch()) {
    try {
      score(batch);
    } catch (...) {
      for (Job& job : batch) {
        if (!job.problem) job.problem = std::current_exception();
      }
    }
    for (Job& job : batch) {
      if (job.problem) {
        job.scores.set_exception(job.problem);
      } else {
        job.scores.set_value(job.result);
      }
    }
  }
}

}  // namespace settrain
