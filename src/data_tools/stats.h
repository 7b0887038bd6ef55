// What a data set is made of, in numbers.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "datasets/load_data.h"
#include "src/data_tools/image_sizes.h"
#include "src/data_tools/noise_matrix.h"
#include "src/data_tools/summary.h"

namespace settrain {

/// Classes of a shot group (metrics/shot_group.h; always by their training images), and a split's images of them.
struct ShotCount {
  int64_t classes = 0, images = 0;
};

/// One split. Of label sets every label counts as an image of its class.
struct SplitStats {
  std::string name;
  int64_t images = 0;
  int64_t labels = 0;           // `images`, or more with label sets
  std::vector<int64_t> counts;  // [classes] images of every class; of train, as trained on
  Summary per_class;
  std::vector<int64_t> missing;        // classes without an image
  std::vector<int64_t> fewest, most;   // the classes whose count is the least, or the greatest
  std::array<ShotCount, 3> shots;      // few, medium, many
  double gini = 0, largest_fifth = 0;  // see lorenz.h; the share of images in the 20 % largest classes
  ImageSizes sizes;
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

}  // namespace settrain
