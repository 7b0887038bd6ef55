// The images of the synthetic data set.
#pragma once

#include <cstdint>
#include <vector>

#include "datasets/dataset.h"

namespace settrain {

struct SyntheticImageOptions {
  int64_t image_size = 0, channels = 0, pixel_noise = 0;
  uint64_t seed = 0;
};

/// Image i is the template of cell `cell_of[i]` plus uniform noise of at most +-pixel_noise levels, both functions of
/// the seed.
class SyntheticImages : public ImageSource {
 public:
  /// Throws DataError unless any two of the `num_cells` templates differ by more than 2 pixel_noise in some pixel.
  SyntheticImages(const SyntheticImageOptions& options, int64_t num_cells, std::vector<int64_t> cell_of);

  int64_t size() const override { return static_cast<int64_t>(cell_of_.size()); }
  void read(int64_t id, Image& image) const override;

  /// The one cell whose template is within pixel_noise of the image everywhere; -1 where there is none.
  int64_t recover_cell(const Image& image) const;
  int64_t cell_of(int64_t id) const { return cell_of_.at(static_cast<size_t>(id)); }

 private:
  using Pixels = std::vector<uint8_t>;  // [image_size, image_size, channels]

  Pixels make_template(int64_t cell) const;
  void check_templates() const;

  SyntheticImageOptions options_;
  std::vector<int64_t> cell_of_;
  std::vector<Pixels> templates_;  // [cells]
};

}  // namespace settrain
