// Statistics of a data set as numbers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "datasets/image_records.h"
#include "datasets/load_data.h"
#include "src/core/progress_bar.h"

namespace settrain {

/// A summary of numbers; all 0 where there are none.
struct Summary {
  double min = 0, median = 0, mean = 0, max = 0;
};

/// The median of an even number of values is the mean of the middle two.
Summary summarise(std::vector<double> values);

struct FormatCount {
  std::string format;  // name_of(ImageFormat)
  int64_t images = 0;
};

/// The sizes of a split's images, from the files' headers alone. They are the stored sizes, before EXIF's rotation
/// (which is ignored unless data.apply_orientation), resizing and cropping.
struct ImageSizes {
  bool files = false;  // false: the images are in memory and have one size
  Summary height, width;
  Summary aspect;                    // width / height
  std::vector<FormatCount> formats;  // by content
  int64_t without_size = 0;          // files that cannot be opened or whose header has no size; in no summary
  int64_t too_large = 0;             // more than kMostPixels, which are not decoded
  int64_t rotated = 0;               // EXIF orientation other than 1, of PNG and WebP where it is in the first 64 KiB
};

/// `count` [1 or more] training samples of class `truth` are trained on as class `given`.
struct NoiseCell {
  int64_t truth = 0, given = 0, count = 0;

  bool operator==(const NoiseCell&) const = default;
};

/// The cells that are not 0, including the diagonal (unchanged labels), ordered by truth and then given. `clean`,
/// `trained`: [samples] class indices. Throws std::invalid_argument where their sizes differ.
std::vector<NoiseCell> noise_matrix(const std::vector<int64_t>& clean, const std::vector<int64_t>& trained);

/// The cells off the diagonal with the largest counts, `most` of them at most; equal ones in the order of `cells`.
std::vector<NoiseCell> largest_confusions(std::vector<NoiseCell> cells, size_t most);

/// The classes of a shot group (metrics/shot_group.h; always by their training images), and a split's images of these
/// classes.
struct ShotCount {
  int64_t classes = 0, images = 0;
};

/// Counts of the records that a data set's files have of a split's images.
struct RecordCounts {
  std::vector<std::pair<std::string, int64_t>> organs, licences;  // images of each, the most first
  int64_t observations = 0, authors = 0;                          // different ones
  int64_t without = 0;                                            // images of which they say nothing
};

/// One split. With label sets, every label counts as an image of its class.
struct SplitStats {
  std::string name;
  int64_t images = 0;
  int64_t labels = 0;           // `images`, or more with label sets
  std::vector<int64_t> counts;  // [classes] images of every class; for train, with label noise
  Summary per_class;
  std::vector<int64_t> missing;        // classes without an image
  std::vector<int64_t> fewest, most;   // the classes whose count is the least, or the greatest
  std::array<ShotCount, 3> shots;      // few, medium, many
  double gini = 0, largest_fifth = 0;  // gini(); the share of images in the 20 % largest classes
  ImageSizes sizes;
  std::optional<RecordCounts> records{};  // none where the data set has no records of its images
};

struct SuperclassStats {
  std::string name;
  int64_t classes = 0, train_images = 0;
};

struct DataStats {
  std::string dataset, digest;
  std::vector<std::string> class_names;
  std::vector<int64_t> superclass_of;         // [classes], or empty
  std::vector<SuperclassStats> superclasses;  // or empty
  std::vector<SplitStats> splits;             // train, val, test; and calibration where it has images
  LabelNoiseReport noise;
  std::vector<NoiseCell> noise_cells;  // empty without noise

  bool has_noise() const { return noise.kind != "none"; }
};

/// Counts labels and reads the headers of image files, on `workers` [1 or more] threads. Throws Interrupted after a
/// signal.
DataStats data_stats(const LoadedData& data, int64_t workers, ProgressOutput output = standard_progress_output());

/// Counts the records of each split's images. Without any record there is nothing to count.
void count_records(const ImageRecords& records, const Dataset& dataset, DataStats& stats);

/// The Lorenz curve of `counts` [n classes, any order, none negative], as in figure 3.2 of Garcin 2023. Element i is
/// the share of all images in the i classes with the fewest images; [n + 1] in [0, 1], from 0 to 1. If no class has an
/// image, it is the curve of equal counts, i / n.
std::vector<double> lorenz_curve(std::vector<int64_t> counts);

/// The Gini coefficient: 1 minus twice the area under the Lorenz curve through its points, which is
/// sum_i (2i - n - 1) c_(i) / (n sum_i c_(i)) for counts c_(1) <= ... <= c_(n). 0 where all are equal, 1 - 1/n where
/// one class has every image.
double gini(std::vector<int64_t> counts);

/// The share of images in the largest `share` [0 to 1] of the classes: 1 minus the Lorenz curve at 1 - share,
/// interpolated linearly between its points.
double share_of_largest(std::vector<int64_t> counts, double share);

}  // namespace settrain
