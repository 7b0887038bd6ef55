// The data set as the rest of the program sees it: images by id, labels, names, and splits. No LibTorch here.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "datasets/decoding/image.h"
#include "datasets/feature_table.h"
#include "src/core/taxonomy.h"

namespace settrain {

/// Images by id, read on demand. Reading is thread-safe.
class ImageSource {
 public:
  virtual ~ImageSource() = default;
  virtual int64_t size() const = 0;
  /// Fills `image`, reusing its memory. Throws DataError naming the file where the image cannot be read.
  virtual void read(int64_t id, Image& image) const = 0;
  /// The same for a part. The result may hold more than the part, up to the whole image where that costs no more.
  virtual void read_part(int64_t id, const ChoosePart& choose, ImagePart& part) const;
  /// The image's name in messages, such as its file.
  virtual std::string describe(int64_t id) const;
  /// A text that determines all images by their ids, such as the digest of the file that holds them; empty where every
  /// image has a file of its own.
  virtual std::string origin() const { return ""; }
  /// The rows of numbers that stand for the images; null where there are images.
  virtual std::shared_ptr<const FeatureTable> features() const { return nullptr; }
};

/// Images of one size, one after the other.
class MemoryImages : public ImageSource {
 public:
  /// `pixels`: [images, height, width, channels]. `origin`: the digest of their file. Throws std::invalid_argument
  /// where the sizes do not divide the pixels.
  MemoryImages(std::vector<uint8_t> pixels, int64_t height, int64_t width, int64_t channels, std::string origin = "");

  int64_t size() const override { return size_; }
  void read(int64_t id, Image& image) const override;
  std::string origin() const override { return origin_; }

  int64_t height() const { return height_; }
  int64_t width() const { return width_; }
  int64_t channels() const { return channels_; }
  /// [images, height, width, channels].
  std::span<const uint8_t> pixels() const { return pixels_; }

 private:
  std::vector<uint8_t> pixels_;
  int64_t height_, width_, channels_, size_;
  std::string origin_;
};

/// Several labels for each sample. The labels of sample i are classes[offsets[i]] to classes[offsets[i + 1] - 1], at
/// least one.
struct LabelLists {
  std::vector<int64_t> offsets;  // [samples + 1], from 0; or empty: every sample has one label
  std::vector<int64_t> classes;

  bool empty() const { return offsets.empty(); }
  std::span<const int64_t> of(int64_t sample) const;
  void add(std::span<const int64_t> labels);
};

/// Some images of a source with their labels. `ids[i]` is the id of sample i in `images`. The random numbers of
/// augmentation and label noise depend on it; it does not depend on how the data were split.
struct Split {
  std::string name;  // "train", "val", "test", "calibration"
  std::shared_ptr<const ImageSource> images{};
  std::vector<int64_t> ids{};
  std::vector<int64_t> labels{};  // class indices, with label noise
  LabelLists label_sets{};        // where samples have several labels: all labels; `labels` has the first
  std::string digest{};           // of its images and labels, before label noise; load_data() fills it, see digest_of()

  int64_t size() const { return static_cast<int64_t>(ids.size()); }
};

/// Mean and standard deviation of each channel, for pixels in [0, 1].
struct Normalisation {
  std::vector<float> mean, std;

  bool operator==(const Normalisation&) const = default;
};

/// P(y | x) of every sample, which is known for generated data: row i of `probabilities[split]`, [samples,
/// classes] row-major. Splits in the order train, val, test, calibration. Label noise is not included.
struct KnownTruth {
  std::array<std::vector<float>, 4> probabilities;
};

/// Image files that two splits have in common.
struct SharedImages {
  std::string split, other;        // names of the splits, in the order train, val, calibration, test
  int64_t count = 0;               // images of `other` that are in `split` too
  std::string first, first_other;  // names of the first such image in `split` and in `other`: files in quotes

  /// "12 images of test are also in val".
  std::string count_text() const;
  /// "12 images of test are also in val; the first: 'b/1.png' is the image of 'a/1.png'".
  std::string text() const;
};

struct Dataset {
  std::string name;
  std::vector<std::string> class_names;
  std::vector<std::string> class_keys;          // [classes] other names in files, such as folders or ids; or empty
  std::vector<std::string> superclass_names;    // empty where there are none
  std::vector<int64_t> superclass_of;           // [classes], or empty
  Taxonomy taxonomy;                            // whose lowest nodes are the superclasses; empty where there are none
  int64_t channels = 0, height = 0, width = 0;  // of every image; height and width are 0 where they differ
  std::string features_model;                   // SHA-256 of the weights that made features, where they are known
  std::string normalisation;                    // the usual one for these images, by name; or "none"
  Split train{"train"}, val{"val"}, test{"test"};
  Split calibration{"calibration"};         // taken from val by data.calibration_share, or listed; usually empty
  std::shared_ptr<const KnownTruth> truth;  // null for real data
  std::vector<SharedImages> shared_images;  // found by load_data(), one for each pair of splits that share images
  std::string digest;  // of the files or of the recipe, all splits together: equal for the same data

  int64_t num_classes() const { return static_cast<int64_t>(class_names.size()); }
};

/// Sizes of a run's data that are known before the data are there: from the config and from what was published.
struct DataFacts {
  int64_t classes = 0;
  int64_t train = 0, val = 0, test = 0;  // images
  int64_t size = 0, channels = 3;        // height = width of an image in pixels, 0 where they differ
  int64_t calibration = 0;               // images, taken from those for validation
};

/// Gives the classes superclasses, by the name of each class' superclass, [classes]. They are numbered in the order of
/// the classes.
void set_superclasses(const std::vector<std::string>& superclass_by_class, Dataset& dataset);

/// "train", "val", "calibration" or "test".
const Split& split_named(const Dataset& dataset, const std::string& name);

/// ": data.calibration_share is 0": the key that would give a split without images some. Data sets without such a key
/// refuse to load an empty split.
const char* why_empty(const Split& split);

/// "train", "val" and "test", and "calibration" where it has images.
std::vector<std::string> split_names(const Dataset& dataset);

/// The split with only these samples, given by their positions.
Split some_of(const Split& split, const std::vector<int64_t>& samples);

/// Number of labels of every class, [classes]. With label sets, every label counts.
std::vector<int64_t> count_classes(const Split& split, int64_t num_classes);

}  // namespace settrain
