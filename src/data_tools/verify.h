// Checks that every image of a data set can be read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "src/core/progress_bar.h"

namespace settrain {

/// An image that cannot be read.
struct BadImage {
  std::string split;
  std::string classes;  // the names of its labels: "oak", or "oak, elm"
  std::string file;     // its path, or its source's name for it
  std::string reason;   // names the file
};

/// The progress of a split.
struct VerifiedSplit {
  std::string name;
  int64_t images = 0, read = 0, bad = 0;  // `read` counts the bad ones too
  int64_t warned = 0;                     // files that were read though the decoder warned of something
  std::string first_warned{}, warning{};  // the first of them, and what the decoder said
};

struct VerifyReport {
  std::vector<VerifiedSplit> splits;
  std::vector<BadImage> bad;  // in the order of splits and samples, whatever the number of workers

  /// Whether all images were read.
  bool complete() const;
};

/// Reads (decodes) the images of the named splits ("train", "val", "test", "calibration") on `workers` [1 or more]
/// threads. An image is bad where reading throws DataError or its pixels do not fit into memory; other exceptions are
/// passed on. Stops and returns after SIGINT or SIGTERM (see catch_interrupts).
VerifyReport verify_images(const Dataset& dataset, const std::vector<std::string>& splits, int64_t workers,
                           ProgressOutput output = standard_progress_output());

/// For people: a line for each bad image, a line for each split with decoders' warnings, then counts by split.
std::string verify_text(const VerifyReport& report);

/// The bad images' files, one in a line, without duplicates.
std::string verify_list(const VerifyReport& report);

}  // namespace settrain
