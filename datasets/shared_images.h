// Images that are in two splits of a data set.
#pragma once

#include <cstdint>
#include <vector>

#include "datasets/dataset.h"

namespace settrain {

struct SharedImageSearch {
  std::vector<SharedImages> found;  // one for each pair of splits that share images
  int64_t not_compared = 0;         // files whose contents would have to be read to know
};

/// Finds the image files that two splits share: the same path, a link to the same file, or a file with the same
/// contents. Only files of equal sizes are compared. Their contents are read where at most `most_files` of them are to
/// be read (each by its first and last 4 KiB, then as a whole where these agree); else only paths and links are
/// compared. Images in memory are not compared. A file that cannot be read is equal to no other. Throws Interrupted
/// after a signal.
SharedImageSearch find_shared_images(const Dataset& dataset, int64_t most_files);

}  // namespace settrain
