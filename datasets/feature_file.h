// Files of features: what a network made of each image, with the images' labels and names.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "datasets/feature_table.h"

namespace settrain {

struct FeatureFile {
  std::shared_ptr<const FeatureTable> features;  // a row for each image
  std::vector<int64_t> labels;                   // [images] class indices; or empty
  std::vector<std::string> class_names;          // or empty
  std::vector<std::string> paths;                // [images] names of the images; or empty
  std::string model;                             // SHA-256 of the weights that made the features; or empty
  std::string digest;                            // SHA-256 of the file
};

/// The contents of a file of features, to be written.
struct FeatureArrays {
  int64_t width = 0;                       // numbers for each image
  std::vector<float> features{};           // [images, width] row-major
  std::vector<int64_t> labels{};           // [images]; or empty: not known
  std::vector<std::string> class_names{};  // or empty
  std::vector<std::string> paths{};        // [images]; or empty: the images are in no files of their own
  std::string model{};                     // SHA-256 of the weights; or empty
};

/// Throws ConfigError unless write_feature_file() can write such a file with these paths: its name ends in .safetensors
/// or .npz, and safetensors can hold the paths in its header.
void check_feature_file(const std::filesystem::path& file, const std::vector<std::string>& paths);

/// Writes safetensors or .npz, by the file's ending, whole or not at all: what read_feature_file() reads. The same
/// arrays give the same bytes. Throws RunError where it cannot be written.
void write_feature_file(const std::filesystem::path& file, const FeatureArrays& arrays);

/// Reads a file whose name ends in .safetensors: the tensors `features` [images, width] of floats and `labels` [images]
/// of integers, the metadata `class_names` and `paths` as JSON arrays of texts, and `checkpoint.sha256`. Or in .npz:
/// arrays of these names, `class_names` and `paths` and `checkpoint.sha256` of texts. Only `features` must be there.
/// float32 and bfloat16 of safetensors are mapped and not copied, so that the file must not become shorter while they
/// are in use.
///
/// Throws DataError, naming the file: it cannot be read, is cut off, has no such features or other shapes, has a number
/// that is NaN or infinite (and in which row), a label below 0 or beyond the names.
FeatureFile read_feature_file(const std::filesystem::path& file);

/// A file of features as a source, whose ids are its rows.
class FeatureRows : public ImageSource {
 public:
  FeatureRows(std::filesystem::path path, FeatureFile file) : path_(std::move(path)), file_(std::move(file)) {}

  int64_t size() const override { return file_.features->size(); }
  /// Throws DataError.
  void read(int64_t id, Image& image) const override;
  std::string describe(int64_t id) const override;
  std::string origin() const override { return file_.digest; }
  std::shared_ptr<const FeatureTable> features() const override { return file_.features; }

  const std::filesystem::path& path() const { return path_; }
  const FeatureFile& file() const { return file_; }

 private:
  std::filesystem::path path_;
  FeatureFile file_;
};

/// Throws DataError, naming both files, where the other one does not belong to the training file: the same file,
/// another width, other weights, or other names of classes; names may be missing in one of them.
void check_belongs(const std::filesystem::path& train_path, const FeatureFile& train, const std::filesystem::path& path,
                   const FeatureFile& other);

}  // namespace settrain
