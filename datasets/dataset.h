// What a data set is to the rest of the program: images by id, labels, names, and splits. No LibTorch here.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace settrain {

/// An image of 8-bit pixels, rows from the top, channels interleaved: pixels[(y * width + x) * channels + c].
struct Image {
  int64_t height = 0, width = 0, channels = 0;
  std::vector<uint8_t> pixels;
};

/// A rectangle of pixels.
struct Box {
  int64_t top = 0, left = 0, height = 0, width = 0;

  bool operator==(const Box&) const = default;
};

/// Some of an image's pixels: those from (`top`, `left`) on.
struct ImagePart {
  Image pixels;
  int64_t top = 0, left = 0;
};

/// Which part of an image is needed, given its size. The box lies within the image.
using ChoosePart = std::function<Box(int64_t height, int64_t width)>;

/// Images by id, read on demand. Reading is thread-safe.
class ImageSource {
 public:
  virtual ~ImageSource() = default;
  virtual int64_t size() const = 0;
  /// Fills `image`, reusing its memory. Throws DataError naming the file where the image cannot be read.
  virtual void read(int64_t id, Image& image) const = 0;
  /// The same for a part, or more than that: where it costs less than the whole, no more than is needed.
  virtual void read_part(int64_t id, const ChoosePart& choose, ImagePart& part) const;
  /// What messages call an image: its file.
  virtual std::string describe(int64_t id) const;
};

/// Several labels a sample, one sample after the other: those of sample i are classes[offsets[i]] to classes[offsets[i
/// + 1] - 1], at least one.
struct LabelLists {
  std::vector<int64_t> offsets;  // [samples + 1], from 0; or empty: every sample has its one label alone
  std::vector<int64_t> classes;

  bool empty() const { return offsets.empty(); }
  std::span<const int64_t> of(int64_t sample) const;
  void add(std::span<const int64_t> labels);
};

/// Some images of a source with their labels. `ids[i]` is sample i's id in `images`, and its identity for the random
/// numbers of augmentation and label noise: it does not depend on how the data were split.
struct Split {
  std::string name;  // "train", "val", "test", "calibration"
  std::shared_ptr<const ImageSource> images;
  std::vector<int64_t> ids;
  std::vector<int64_t> labels;  // class indices, as trained on: label noise included
  LabelLists label_sets{};      // where samples have several labels: all of them, `labels` their first

  int64_t size() const { return static_cast<int64_t>(ids.size()); }
};

/// Per-channel mean and standard deviation, of pixels in [0, 1].
struct Normalisation {
  std::vector<float> mean, std;
};

/// P(y | x) of every sample, where it is known because the data were made: row i of `probabilities[split]`, [samples,
/// classes] row-major. Splits in the order train, val, test, calibration. Label noise is not part of it.
struct KnownTruth {
  std::array<std::vector<float>, 4> probabilities;
};

struct Dataset {
  std::string name;
  std::vector<std::string> class_names;
  std::vector<std::string> class_keys;          // [classes] what files call them besides: folders, ids; empty: nothing
  std::vector<std::string> superclass_names;    // empty where there are none
  std::vector<int64_t> superclass_of;           // [classes], or empty
  int64_t channels = 0, height = 0, width = 0;  // of every image; height and width 0: they differ
  std::string normalisation;                    // the usual one for these images: a name in the registry, or none
  Split train, val, test;
  Split calibration{};                      // what data.calibration_share took out of val; mostly empty
  std::shared_ptr<const KnownTruth> truth;  // null for real data
  std::string digest;                       // of the files or of the recipe: tells whether two runs saw the same data

  int64_t num_classes() const { return static_cast<int64_t>(class_names.size()); }
};

/// "train", "val", "calibration" or "test".
const Split& split_named(const Dataset& dataset, const std::string& name);

/// "train", "val" and "test", and "calibration" where it has images.
std::vector<std::string> split_names(const Dataset& dataset);

/// The split with these samples, by their positions.
Split some_of(const Split& split, const std::vector<int64_t>& samples);

/// Number of training labels of every class, [classes]; of sets, every label counts.
std::vector<int64_t> count_classes(const Split& split, int64_t num_classes);

}  // namespace settrain
