// From an image of a source to the model's input.
#pragma once

#include <cstdint>
#include <vector>

#include "datasets/dataset.h"
#include "src/loader/pipeline.h"
#include "src/loader/pixel_writer.h"
#include "src/loader/view_renderer.h"

namespace settrain {

/// What a transform works with, kept from image to image. Belongs to one thread.
struct TransformMemory {
  ImagePart part;
  ViewRenderer renderer;
};

/// Reads, scales, crops, flips and normalises, in one go: no more of an image is decoded than its views need, and no
/// copy is made between decoding and the batch. Thread-safe.
class Transform {
 public:
  Transform(Pipeline pipeline, const Normalisation& normalisation, PixelFormat format = {});

  const Pipeline& pipeline() const { return pipeline_; }
  PixelFormat format() const { return writer_.format(); }
  int64_t channels() const { return writer_.channels(); }

  /// Writes the views of image `id` to `output`, one after the other. What is drawn for it is a function of (seed,
  /// epoch, id, repetition) alone. Throws DataError where the image cannot be read.
  void operator()(const ImageSource& images, int64_t id, int64_t epoch, TransformMemory& memory, void* output,
                  int64_t repetition = 0) const;

  /// Writes the views of an image, whose pixels `part` holds, to `output`, one after the other.
  void render(const ImagePart& part, const std::vector<View>& views, ViewRenderer& renderer, void* output) const;

  /// What all views of one image take.
  int64_t bytes() const { return pipeline_.views() * bytes_per_view(); }

 private:
  int64_t bytes_per_view() const;

  Pipeline pipeline_;
  PixelWriter writer_;
};

}  // namespace settrain
