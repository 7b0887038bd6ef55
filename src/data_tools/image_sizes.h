// The sizes of a split's images, from the files' headers alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "src/core/progress_bar.h"
#include "src/data_tools/summary.h"

namespace settrain {

struct FormatCount {
  std::string format;  // name_of(ImageFormat)
  int64_t images = 0;
};

/// Sizes are those stored in the files, before EXIF's rotation (which is
/// ignored unless data.apply_orientation), resizing and cropping.
struct ImageSizes {
  bool files = false;  // else the images are in memory and of one size
  Summary height, width;
  Summary aspect;                    // width / height
  std::vector<FormatCount> formats;  // by content, those that there are
  int64_t without_size = 0;          // of files that cannot be opened or whose header tells none; in no summary
  int64_t too_large = 0;             // more than kMostPixels, which are not decoded
  int64_t rotated = 0;               // EXIF orientation other than 1
};

/// Of the images of `split`; height and width of `dataset` where they are no files. Headers are read on `workers` [1 or
/// more] threads. Throws Interrupted after a signal.
ImageSizes image_sizes(const Dataset& dataset, const Split& split, int64_t workers, ProgressBar& bar);

}  // namespace settrain
