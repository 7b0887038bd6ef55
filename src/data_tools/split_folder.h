// A folder of classes, divided into training, validation, calibration and test images: `settrain data split`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "datasets/file_table.h"
#include "datasets/shared_images.h"
#include "src/data_tools/verify.h"

namespace settrain {

/// An exact decimal fraction in (0, 1): 0.1 is 1/10, which no double is, so ceil(0.1 * 30) is 3.
class Fraction {
 public:
  /// "0.1", ".25", up to nine digits. Throws ConfigError, naming `option`, for anything else.
  Fraction(const std::string& text, const std::string& option);

  int64_t rounded_up(int64_t n) const;  // n in [0, 2^32)
  int64_t nearest(int64_t n) const;     // halves up
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  int64_t numerator_ = 0, denominator_ = 1;
};

struct SplitSizes {
  int64_t train = 0, val = 0, calibration = 0, test = 0;
  bool operator==(const SplitSizes&) const = default;
};

/// The numbers of validation, calibration and test images of a class of n images. tenths: ceil(n / 10) for each.
/// plantnet: the rule of Pl@ntNet-300K (Garcin's thesis, 2023, section 3.2.2), ceil(n / 10) for validation and as many
/// for the test, and none for calibration. fractions: the nearest whole numbers to the fractions of n, at least one.
/// All keep the classes with more than `min_images` images.
struct SplitRule {
  enum class Kind { kTenths, kFractions, kPlantnet };

  Kind kind = Kind::kTenths;
  Fraction val{"0.1", "--val"}, calibration{"0.1", "--calibration"}, test{"0.1", "--test"};
  int64_t min_images = 4;

  /// All zero where the class is left out, because it has min_images or fewer or no image would be left to train on.
  /// Else all are at least 1, but for `calibration` of plantnet.
  SplitSizes sizes(int64_t n) const;
};

struct ClassSplit {
  std::string name;                                                  // of its folder
  std::vector<std::filesystem::path> train, val, calibration, test;  // relative to the folder of classes, sorted

  int64_t size() const { return static_cast<int64_t>(train.size() + val.size() + calibration.size() + test.size()); }
};

struct FolderSplit {
  std::vector<ClassSplit> classes;   // in the order of their names; their places are the labels
  std::vector<ClassSplit> left_out;  // too small: all their images are in `train`
  UnreadFiles unread;                // files that are no images, and images outside the classes' folders
  int64_t empty = 0;                 // images of the classes, those left out too, that are files of 0 bytes
  std::string first_empty;
  std::vector<BadImage> unreadable{};  // left out, where every image was read
  int64_t read = 0;                    // images that were read, those included
};

/// Divides the images of every folder in `folder`, subfolders included, by `rule`. The division of a class is a
/// function of `seed`, the folder's name and the files' names: it does not depend on other classes. With `readers`
/// above 0, so many threads read every image first, and those that cannot be read are left out.
///
/// Throws Interrupted after a signal, and DataError where there is no such folder, where fewer than two classes are
/// left, for a link to nothing, and for a name that the lists cannot hold: one with a line break, or a class name with
/// a blank at an end.
FolderSplit split_folder(const std::filesystem::path& folder, const SplitRule& rule, uint64_t seed,
                         int64_t readers = 0);

/// Finds images with copies in two parts of the split, or in two classes of one part, as find_shared_images() does.
SharedImageSearch shared_images_of(const std::filesystem::path& folder, const FolderSplit& split, int64_t most_files);

struct SplitRequest {
  std::filesystem::path folder, out;
  SplitRule rule;
  uint64_t seed = 4;
  bool overwrite = false;
};

/// Throws DataError where the folder of classes cannot be listed, and RunError where a config cannot hold one of the
/// paths, and where `request.out` holds files already, unless `overwrite` is set.
void check_out(const SplitRequest& request);

/// Writes to `request.out`, which is created where it is missing: train.txt, val.txt, calibration.txt where there are
/// calibration images, and test.txt with lines `path label` (read_image_list()), classes.csv with lines
/// `class_N,folder` (read_class_table()) and, last, split.json, which is there only if the others are complete;
/// docs/file_formats.md has its fields. Throws RunError where that fails.
void write_split(const SplitRequest& request, const FolderSplit& split);

/// For people: a table of counts, what was left out, and what the calibration images suffice for.
std::string describe_split(const SplitRule& rule, const FolderSplit& split);

/// The absolute path in JSON's quotes, as a config has it. `path`: UTF-8 text.
std::string quoted_path(const std::filesystem::path& path);

/// The path of a list that write_split() has written, as a config names it: from the folder of images, so that both may
/// move together, where that leads to it; else absolute. Text in quotes for YAML.
std::string list_path(const SplitRequest& request, const std::string& name);

/// The section `data` of a config that uses it, as YAML on two lines.
std::string data_lines(const SplitRequest& request, const FolderSplit& split);

}  // namespace settrain
