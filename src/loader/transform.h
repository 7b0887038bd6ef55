// From an image of a source to the model's input.
#pragma once

#include <cstdint>
#include <vector>

#include "datasets/dataset.h"
#include "src/loader/image_operation.h"
#include "src/loader/kernels/resize_kernels.h"
#include "src/loader/pipeline.h"
#include "src/loader/pixel_writer.h"
#include "src/loader/view.h"

namespace settrain {

/// Draws views from decoded pixels. Scales by Pillow's filters to Pillow's bytes: first along rows, then along
/// columns, each rounded to 8 bits, as Pillow up to version 12. Only visible pixels are computed. Keeps its memory from
/// image to image; used by one thread.
class ViewRenderer {
 public:
  /// Writes `image`, [view.crop.height, view.crop.width] pixels in the writer's format. `part` holds
  /// needed_pixels(view). Throws std::invalid_argument where it does not, or where its channels are not the
  /// writer's.
  void render(const ImagePart& part, const View& view, const PixelWriter& writer, void* image);

 private:
  void prepare_rows(const ImagePart& part, const View& view, int64_t first_column, int64_t columns);

  std::vector<uint8_t> resized_;       // the source rows, scaled along their length
  std::vector<const uint8_t*> rows_;   // pointers to them
  std::vector<PixelTaps> pixel_taps_;  // for the visible columns
  std::vector<uint8_t> mixed_, line_;
  int64_t first_row_ = 0;  // the row of view.source that rows_ starts with
};

/// Memory of a transform, kept from image to image. Used by one thread.
struct TransformMemory {
  ImagePart part;
  ViewRenderer renderer;
  Image view{};  // where its pixels are changed before they are written
  ImageEditor editor;
};

/// Reads, scales, crops, flips and normalises in one pass: only the pixels that the views need are decoded, and no copy
/// is made between decoding and the batch. A view whose pixels are changed (data.augment) is first made as bytes.
/// Thread-safe.
class Transform {
 public:
  /// Throws KeyError where the augmentation changes colours, and the images have none.
  Transform(Pipeline pipeline, const Normalisation& normalisation, PixelFormat format = {});

  const Pipeline& pipeline() const { return pipeline_; }
  PixelFormat format() const { return writer_.format(); }
  int64_t channels() const { return writer_.channels(); }

  /// Writes the views of image `id` to `output`, one after the other. The random draws are a function of (seed, epoch,
  /// id, repetition) alone. Throws DataError where the image cannot be read.
  void operator()(const ImageSource& images, int64_t id, int64_t epoch, TransformMemory& memory, void* output,
                  int64_t repetition = 0) const;

  /// Writes the views of an image, whose pixels `part` holds, to `output`, one after the other.
  void render(const ImagePart& part, const std::vector<View>& views, ViewRenderer& renderer, void* output) const;

  /// The same with changes to the pixels of the views.
  void render(const ImagePart& part, const std::vector<View>& views, const PixelChanges& changes,
              TransformMemory& memory, void* output) const;

  /// The size of all views of one image, in bytes.
  int64_t bytes() const { return pipeline_.views() * bytes_per_view(); }

 private:
  int64_t bytes_per_view() const;

  Pipeline pipeline_;
  PixelWriter writer_, byte_writer_;
  std::vector<uint8_t> erased_;  // [channels] the colour of erased pixels
};

}  // namespace settrain
