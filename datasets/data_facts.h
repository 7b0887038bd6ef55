// What a run's data are like, known before they are there.
#pragma once

#include <cstdint>

namespace settrain {

/// Sizes that follow from a resolved config, and for published data sets from what was published.
struct DataFacts {
  int64_t classes = 0;
  int64_t train = 0, val = 0, test = 0;  // images
  int64_t size = 0, channels = 3;        // of an image, height and width in pixels; 0: they differ
  int64_t calibration = 0;               // images, which data.calibration_share keeps of those for validation
};

}  // namespace settrain
