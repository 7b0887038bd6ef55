#include "src/serve/batch_scorer.h"

#include <ATen/Parallel.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/isfinite.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

#include <exception>
#include <utility>

#include "models/model.h"
#include "src/core/error.h"
#include "src/serve/http/http_error.h"
#include "src/train/evaluation.h"

namespace settrain {

BatchScorer::BatchScorer(const TrainedModel& model, int64_t views, const BatchOptions& options, ServiceMetrics& metrics)
    : model_(model), views_(views), options_(options), metrics_(metrics), thread_([this] { work(); }) {}

BatchScorer::~BatchScorer() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

BatchScorer::Announced::Announced(BatchScorer& scorer) : scorer_(scorer) {
  const std::lock_guard lock(scorer_.mutex_);
  ++scorer_.on_the_way_;
}

BatchScorer::Announced::~Announced() {
  if (!on_the_way_) return;
  const std::lock_guard lock(scorer_.mutex_);
  scorer_.arrived();
}

void BatchScorer::arrived() {
  --on_the_way_;
  changed_.notify_all();
}

at::Tensor BatchScorer::Announced::score(std::vector<at::Tensor> images) {
  std::future<at::Tensor> scores;
  {
    const std::lock_guard lock(scorer_.mutex_);
    const int64_t count = std::ssize(images);
    if (scorer_.waiting_images_ + count > scorer_.options_.most_waiting) {
      throw HttpError(503, "too many images wait for the model");
    }
    scorer_.waiting_.push_back({std::move(images), Clock::now()});
    scores = scorer_.waiting_.back().scores.get_future();
    scorer_.waiting_images_ += count;
    scorer_.metrics_.set_waiting_images(scorer_.waiting_images_);
    on_the_way_ = false;
    scorer_.arrived();
  }
  return scores.get();
}

// Empty at the end.
std::vector<BatchScorer::Job> BatchScorer::next_batch() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
  if (waiting_.empty()) return {};
  const auto window = std::chrono::duration<double, std::milli>(options_.window_ms);
  changed_.wait_until(lock, waiting_.front().since + std::chrono::duration_cast<Clock::duration>(window),
                      [this] { return stopping_ || on_the_way_ == 0 || waiting_images_ >= options_.most_images; });
  std::vector<Job> batch;
  int64_t images = 0;
  while (!waiting_.empty()) {
    const int64_t count = std::ssize(waiting_.front().images);
    if (!batch.empty() && images + count > options_.most_images) break;
    images += count;
    batch.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  waiting_images_ -= images;
  metrics_.set_waiting_images(waiting_images_);
  return batch;
}

at::Tensor BatchScorer::scores_of(const std::vector<at::Tensor>& images) const {
  Batch batch;
  batch.images = at::cat(images);
  batch.views = views_;
  const at::Tensor scores =
      rule_scores(model_, score_batch(*model_.model, batch, model_.computation, model_.crop_average));
  if (!at::isfinite(scores).all().item<bool>()) throw NumericalError("the model's scores are not finite");
  return scores;
}

void BatchScorer::work() {
  at::init_num_threads();  // the process' number of compute threads is set thread by thread
  const c10::InferenceMode inference;
  for (std::vector<Job> batch = next_batch(); !batch.empty(); batch = next_batch()) {
    std::vector<at::Tensor> images;
    std::vector<Job*> scored;
    for (Job& job : batch) {
      if (Clock::now() - job.since > std::chrono::duration<double>(options_.seconds)) {
        job.scores.set_exception(std::make_exception_ptr(
            HttpError(503, fmt::format("the image waited more than {} s for the model", options_.seconds))));
        continue;
      }
      images.insert(images.end(), job.images.begin(), job.images.end());
      scored.push_back(&job);
    }
    if (scored.empty()) continue;
    try {
      metrics_.add_batch(std::ssize(images));
      const at::Tensor scores = scores_of(images);
      int64_t first = 0;
      for (Job* job : scored) {
        const int64_t count = std::ssize(job->images);
        job->scores.set_value(scores.narrow(0, first, count));
        first += count;
      }
    } catch (const std::exception&) {
      for (Job* job : scored) job->scores.set_exception(std::current_exception());
    }
  }
}

}  // namespace settrain
