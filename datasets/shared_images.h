// Images that are in two splits of a data set, or in one with two labels.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "datasets/dataset.h"

namespace settrain {

/// Images that one split has several times, with different labels.
struct TwoLabels {
  std::string split;
  int64_t count = 0;                       // images with other labels than the first of their file's
  std::string first, other;                // names of the first such pair; equal where a list names a file twice
  std::string first_labels, other_labels;  // the names of their classes

  /// "1 image has two labels in train; the first: 'elm/1.png' (elm) is the image of 'oak/1.png' (oak)".
  std::string text() const;
};

struct SharedImageSearch {
  std::vector<SharedImages> found;    // one for each pair of splits that share images
  std::vector<TwoLabels> two_labels;  // one for each split that has such images
  int64_t not_compared = 0;           // files whose contents would have to be read to know

  /// Logs a warning for each of `found` and `two_labels`.
  void warn() const;
};

/// Files whose contents are compared whenever data are loaded: about a second from a local disk.
inline constexpr int64_t kFilesToCompare = 5000;

/// Finds the image files that two splits share, or that one split has with different labels: the same path, a link to
/// the same file, or a file with the same contents. Only files of equal sizes are compared. Their contents are read
/// where at most `most_files` of them are to be read (each by its first and last 4 KiB, then as a whole where these
/// agree); else only paths and links are compared. A file that cannot be read is equal to no other. Rows of features
/// are those of one image where they are equal bit for bit and have eight different numbers at least: others may be
/// equal by chance. Images in memory are not compared. Throws Interrupted after a signal.
SharedImageSearch find_shared_images(const Dataset& dataset, int64_t most_files);

}  // namespace settrain
