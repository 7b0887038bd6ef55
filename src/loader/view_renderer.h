// From decoded pixels to what a model sees.
#pragma once

#include <cstdint>
#include <vector>

#include "datasets/dataset.h"
#include "src/loader/kernels/resize_kernels.h"
#include "src/loader/pixel_writer.h"
#include "src/loader/taps.h"
#include "src/loader/view.h"

namespace settrain {

/// Scales by Pillow's bilinear filter to Pillow's bytes: first along rows, then along columns, each rounded to 8 bits,
/// as Pillow up to version 12 does it. Only what is visible is computed. Keeps its memory from image to image; belongs
/// to one thread.
class ViewRenderer {
 public:
  /// Writes `image`, [view.crop.height, view.crop.width] pixels in the writer's format. `part` holds
  /// needed_pixels(view). Throws std::invalid_argument where it does not, or has other channels than the writer.
  void render(const ImagePart& part, const View& view, const PixelWriter& writer, void* image);

 private:
  const uint8_t* row_of(const ImagePart& part, int64_t y, int64_t left, int64_t width);
  void prepare_rows(const ImagePart& part, const View& view, int64_t first_column, int64_t columns);

  std::vector<uint8_t> resized_;       // the source rows, scaled along their length
  std::vector<const uint8_t*> rows_;   // where each of them is
  std::vector<PixelTaps> pixel_taps_;  // of the visible columns
  std::vector<uint8_t> last_row_, mixed_, line_;
  int64_t first_row_ = 0;  // that rows_ begins with, of view.source
};

}  // namespace settrain
