// From the bytes of an image file to a model's input.
#pragma once

#include <ATen/core/Tensor.h>

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

/// Thread-safe. Decodes `at_once` images at a time, which bounds the memory; who comes then waits.
class ImageReader {
 public:
  ImageReader(const TrainedModel& model, int64_t at_once, int64_t most_pixels);

  /// [views, channels, height, width], as `settrain predict` makes them. Throws HttpError 400 where the image cannot be
  /// decoded, 413 where it declares more pixels than are taken.
  at::Tensor read(const Upload& image);

  int64_t views() const { return transform_.pipeline().views(); }

 private:
  class Borrowed;

  Transform transform_;
  DecodeOptions decode_;
  int64_t most_pixels_;
  std::mutex mutex_{};
  std::condition_variable is_back_{};
  std::vector<std::unique_ptr<TransformMemory>> free_{};  // of those that decode at a time
};

}  // namespace settrain
