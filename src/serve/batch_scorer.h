// Batches of images from several requests, and their scores.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <future>
#include <list>
#include <mutex>
#include <thread>
#include <vector>

#include "src/inference/trained_model.h"
#include "src/serve/http/service_metrics.h"
#include "src/serve/serve.h"

namespace settrain {

/// A thread that asks the model. Images that arrive while it is busy make the next batch. Thread-safe.
class BatchScorer {
 public:
  using Clock = std::chrono::steady_clock;

  /// `views`: the views of an image, [views, channels, height, width] as the loader makes them. The constructor asks
  /// the model about them, alone and in a batch of the largest size, so that errors, and the slow first call, come
  /// here.
  BatchScorer(const TrainedModel& model, const at::Tensor& views, const BatchOptions& options, ServiceMetrics& metrics);
  /// Scores the images that still wait.
  ~BatchScorer();
  BatchScorer(const BatchScorer&) = delete;
  BatchScorer& operator=(const BatchScorer&) = delete;

  /// Places in the queue for the images of a request, from before they are decoded: a batch may wait for them.
  class Places {
   public:
    /// Throws HttpError 503 where the queue has less room.
    Places(BatchScorer& scorer, int64_t images);
    ~Places();
    Places(const Places&) = delete;
    Places& operator=(const Places&) = delete;

    /// The time by which the model must have been reached.
    Clock::time_point deadline() const { return deadline_; }

    /// The scores as rules take them, [images, classes] float on the CPU; each of `images` holds the views of one. To
    /// be called once. Throws HttpError 503 after the deadline, and what the model throws.
    at::Tensor score(std::vector<at::Tensor> images);

   private:
    BatchScorer& scorer_;
    int64_t images_;  // not in the queue yet
    Clock::time_point deadline_;
  };

 private:
  struct Job {
    std::vector<at::Tensor> images;
    Clock::time_point since, deadline;
    std::promise<at::Tensor> scores{};
    at::Tensor result{};
    std::exception_ptr problem{};
  };

  void work(const at::Tensor& views, std::promise<void>& is_ready);
  std::list<Job> next_batch();
  void score(std::list<Job>& batch) const;
  at::Tensor scores_of(const std::vector<at::Tensor>& images) const;
  void show_waiting();  // with mutex_ held

  const TrainedModel& model_;
  BatchOptions options_;
  ServiceMetrics& metrics_;
  int64_t views_;
  std::mutex mutex_{};
  std::condition_variable changed_{};
  std::list<Job> queue_{};
  int64_t queued_images_ = 0, announced_images_ = 0;
  bool stopping_ = false;
  std::thread thread_{};
};

}  // namespace settrain
