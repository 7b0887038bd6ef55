// From the bytes of an image file to a model's input.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "datasets/decode_image.h"
#include "src/inference/trained_model.h"
#include "src/loader/transform.h"
#include "src/serve/http/upload.h"

namespace settrain {

/// Thread-safe. Decodes `at_once` images at a time, and of those with more than kLargeImage pixels one, which bounds
/// the memory; who comes then waits.
class ImageReader {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr int64_t kLargeImage = 10'000'000;

  ImageReader(const TrainedModel& model, int64_t at_once, int64_t most_pixels);

  /// [views, channels, height, width], as `settrain predict` makes them. Throws HttpError 400 where the image cannot be
  /// decoded, 413 where it declares more pixels than are taken, 503 where its turn does not come before `deadline`.
  at::Tensor read(const Upload& image, Clock::time_point deadline);

  /// Black views.
  at::Tensor no_image() const;

 private:
  class Turn;

  Transform transform_;
  DecodeOptions decode_;
  int64_t most_pixels_;
  std::mutex mutex_{};
  std::condition_variable changed_{};
  std::vector<std::unique_ptr<TransformMemory>> free_{};  // of those that decode at a time
  bool decodes_large_ = false;
};

}  // namespace settrain
