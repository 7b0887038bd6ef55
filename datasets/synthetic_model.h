// The distribution and the images behind the data set `synthetic`.
#pragma once

#include <cstdint>
#include <vector>

#include "datasets/dataset.h"

namespace settrain {

/// The `step` of the random words from Stream::kSynthetic. It keeps the uses apart.
enum SyntheticUse : uint32_t {
  kTemplate,  // item = cell, block = node of the template's grid
  kOrder,     // of the training labels
  kSample,    // item = sample id: its label and its cell
  kPixels,    // item = sample id, block = four pixel values
  kLabelSet,  // item = sample id, block = two labels beside its own
};

/// The inverse distribution function of `probabilities` at u in [0, 1).
int64_t draw_class(const std::vector<double>& probabilities, double u);

/// The joint distribution of labels and cells. Classes come in superclasses (groups) of `group_size` consecutive
/// indices; the last may be smaller. Every class has one cell.
///
/// Prior: P(y = j) is proportional to imbalance^(-j / (num_classes - 1)), so the first class is `imbalance` times as
/// frequent as the last. Cell: a sample of class y lies in y's own cell with probability 1 - a. With probability a its
/// cell is drawn uniformly from y's superclass, y's own cell included. For superclass g of G:
///   a = min(1, ambiguity * (0.5 + g / (G - 1)))
/// It rises evenly from half of `ambiguity` in the first superclass to one and a half times in the last, so some
/// superclasses need larger sets than others. With a single superclass, a = ambiguity.
class SyntheticJoint {
 public:
  SyntheticJoint(int64_t num_classes, int64_t group_size, double ambiguity, double imbalance);

  int64_t num_classes() const { return static_cast<int64_t>(prior_.size()); }
  int64_t num_groups() const { return (num_classes() + group_size_ - 1) / group_size_; }
  int64_t group_of(int64_t c) const { return c / group_size_; }

  /// [classes] P(y).
  const std::vector<double>& prior() const { return prior_; }
  /// P(cell | y).
  double cell_given_label(int64_t cell, int64_t label) const;
  /// [classes] P(y | cell).
  std::vector<double> label_given_cell(int64_t cell) const;

  /// Inverse distribution functions, of numbers in [0, 1).
  int64_t draw_label(double u) const;
  int64_t draw_cell(int64_t label, double u) const;

  /// [classes] whole numbers that sum to `total` and follow the prior (largest remainders first), each at least one
  /// where `total` is at least the number of classes.
  std::vector<int64_t> counts(int64_t total) const;

 private:
  double ambiguity_of(int64_t group) const;
  int64_t group_begin(int64_t group) const { return group * group_size_; }
  int64_t group_end(int64_t group) const;

  int64_t group_size_;
  double ambiguity_;
  std::vector<double> prior_;
};

struct SyntheticImageOptions {
  int64_t image_size = 0, channels = 0, pixel_noise = 0;
  uint64_t seed = 0;
};

/// Image i is the template of cell `cell_of[i]`, a smooth random pattern, plus uniform noise of at most +-pixel_noise
/// levels. Both are functions of the seed.
class SyntheticImages : public ImageSource {
 public:
  /// `origin`: a text that determines the cells too. Throws DataError unless any two of the `num_cells` templates
  /// differ by more than 2 pixel_noise in some pixel.
  SyntheticImages(const SyntheticImageOptions& options, int64_t num_cells, std::vector<int64_t> cell_of,
                  std::string origin = "");

  int64_t size() const override { return static_cast<int64_t>(cell_of_.size()); }
  void read(int64_t id, Image& image) const override;
  std::string origin() const override { return origin_; }

  /// The one cell whose template is within pixel_noise of the image everywhere; -1 where there is none.
  int64_t recover_cell(const Image& image) const;
  int64_t cell_of(int64_t id) const { return cell_of_.at(static_cast<size_t>(id)); }

 private:
  using Pixels = std::vector<uint8_t>;  // [image_size, image_size, channels]

  Pixels make_template(int64_t cell) const;
  void check_templates() const;

  SyntheticImageOptions options_;
  std::vector<int64_t> cell_of_;
  std::string origin_;
  std::vector<Pixels> templates_;  // [cells]
};

}  // namespace settrain
