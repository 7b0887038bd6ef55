// Scores of images that wait for each other.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

#include "src/inference/trained_model.h"
#include "src/serve/http/service_metrics.h"
#include "src/serve/serve.h"

namespace settrain {

/// A thread that asks the model. What comes while it is busy makes the next batch. Thread-safe.
class BatchScorer {
 public:
  BatchScorer(const TrainedModel& model, int64_t views, const BatchOptions& options, ServiceMetrics& metrics);
  /// After what waits is scored.
  ~BatchScorer();
  BatchScorer(const BatchScorer&) = delete;
  BatchScorer& operator=(const BatchScorer&) = delete;

  /// Images that will be scored as soon as they are decoded: a batch may wait for them.
  class Announced {
   public:
    explicit Announced(BatchScorer& scorer);
    ~Announced();
    Announced(const Announced&) = delete;
    Announced& operator=(const Announced&) = delete;

    /// The scores as rules take them, [images, classes] float on the CPU; each of `images` holds the views of one. To
    /// be called once. Throws HttpError 503 where too many images wait, or these had to for too long.
    at::Tensor score(std::vector<at::Tensor> images);

   private:
    BatchScorer& scorer_;
    bool on_the_way_ = true;
  };

 private:
  using Clock = std::chrono::steady_clock;
  struct Job {
    std::vector<at::Tensor> images;
    Clock::time_point since;
    std::promise<at::Tensor> scores{};
  };

  void work();
  std::vector<Job> next_batch();
  at::Tensor scores_of(const std::vector<at::Tensor>& images) const;
  void arrived();

  const TrainedModel& model_;
  int64_t views_;
  BatchOptions options_;
  ServiceMetrics& metrics_;
  std::mutex mutex_{};
  std::condition_variable changed_{};
  std::deque<Job> waiting_{};
  int64_t waiting_images_ = 0, on_the_way_ = 0;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace settrain
