// How good sets are: how often they hold the label, and how large they are.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "src/core/taxonomy.h"

namespace settrain {

inline constexpr double kUndefinedQuality = std::numeric_limits<double>::quiet_NaN();

struct SetQuality {
  int64_t images = 0;
  double coverage = 0;                    // share of the images whose set holds their label; where images have several
                                          // labels, the mean share of an image's labels that its set holds
  std::array<double, 2> interval{};       // its 95 % Wilson interval
  double mean_size = 0, median_size = 0;  // of the sets; the median of an even number is the mean of the middle two
  double macro_coverage = 0;              // mean over classes with images
  std::array<double, 3> shot_coverage{};  // mean over few-, medium- and many-shot classes; NaN where there are none
  double below_half = 0;                  // share of the classes with images whose coverage is under 50 %
  double undercoverage_gap = 0;           // mean over classes with images of max(0, 1 - alpha - c_y)
  double coverage_gap = 0;                // mean over these classes of |1 - alpha - c_y| (Ding et al. 2023)
  double size_stratified_violation = 0;  // largest |1 - alpha - coverage| over images with sets of 0 to 1, 2 to 3, 4 to
                                         // 10, 11 to 100, and more classes (Angelopoulos et al. 2021)
  double empty = 0, full = 0;            // share of the sets with no class, and with all classes
  int64_t classes_without_images = 0;    // left out above
  // Where the classes have a taxonomy, else NaN and empty: the fewest nodes that make exactly the set, and their mean
  // depth, both averaged over the sets that are not empty; and the share of images for which a class of the set belongs
  // to the same node of a rank as the label, from the rank above the classes upward.
  double mean_nodes = kUndefinedQuality, mean_depth = kUndefinedQuality;
  std::vector<double> rank_coverage{};  // [ranks above the classes]
  std::vector<double> class_coverage;   // [classes]; NaN without images
};

/// The facts about the sets of images that their quality depends on.
struct SetOutcomes {
  at::Tensor labels;     // [images] int64; or [images, classes] bool, all labels
  at::Tensor has_label;  // [images] bool: whether the image's set holds its label; or [images, classes] bool: the
                         // labels that it holds
  at::Tensor sizes;      // [images] int64: classes in its set
  int64_t classes = 0;
  // Undefined without a taxonomy.
  at::Tensor nodes{};     // [images] int64: the fewest nodes that make exactly the set
  at::Tensor depths{};    // [images] float64: their mean depth; 0 without any
  at::Tensor has_rank{};  // [images, ranks above the classes] bool: see SetQuality::rank_coverage

  /// The outcomes of the images with these indices, [any number] int64, which may repeat.
  SetOutcomes of(const at::Tensor& images) const;
};

/// `sets` [images, classes] bool and `labels` [images] int64, or [images, classes] bool with at least one label an
/// image, on the CPU. `taxonomy` of the classes, or empty; it is for images with one label.
SetOutcomes outcomes_of(const at::Tensor& sets, const at::Tensor& labels, const Taxonomy& taxonomy = {});

/// `wanted` is 1 - alpha, or 1 - E; NaN for rules without an error, whose gaps and violation are then NaN too.
/// `train_counts` [classes], or empty: no shot groups. Without images all shares and means are NaN.
SetQuality set_quality(const SetOutcomes& outcomes, double wanted, const std::vector<int64_t>& train_counts);

/// The same of outcomes_of(sets, labels).
SetQuality set_quality(const at::Tensor& sets, const at::Tensor& labels, double wanted,
                       const std::vector<int64_t>& train_counts, const Taxonomy& taxonomy = {});

}  // namespace settrain
