// Whether every image of a data set can be read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "datasets/dataset.h"
#include "src/core/progress_bar.h"

namespace settrain {

/// An image that cannot be read.
struct BadImage {
  std::string split;
  std::string classes;  // the names of its labels: "oak", or "oak, elm"
  std::string file;     // its path, or what its source calls it
  std::string reason;   // names the file
};

/// How far the reading of a split came.
struct VerifiedSplit {
  std::string name;
  int64_t images = 0, read = 0, bad = 0;  // `read` counts the bad ones too
};

struct VerifyReport {
  std::vector<VerifiedSplit> splits;
  std::vector<BadImage> bad;  // in the order of splits and samples, whatever the number of workers

  /// Whether no signal stopped it.
  bool complete() const;
};

/// Reads (decodes) the images of the named splits, of "train", "val", "test", "calibration", on `workers` [1 or more]
/// threads. A DataError makes an image bad, and so does a lack of memory for its pixels; other exceptions pass. After
/// SIGINT or SIGTERM (see catch_interrupts) it reads no further and returns.
VerifyReport verify_images(const Dataset& dataset, const std::vector<std::string>& splits, int64_t workers,
                           ProgressOutput output = standard_progress_output());

/// For people: a line a bad image, then counts by split.
std::string verify_text(const VerifyReport& report);

/// The bad images' files, one a line, none twice.
std::string verify_list(const VerifyReport& report);

}  // namespace settrain
