// How fast images are loaded, and where the time goes.
#pragma once

#include <cstdint>
#include <vector>

#include "datasets/image_files.h"
#include "src/loader/loader.h"

namespace settrain {

/// Seconds that one thread spends on some images.
struct LoadingTimes {
  int64_t images = 0;
  double read = 0;      // the file's bytes
  double decode = 0;    // of what the view needs
  double render = 0;    // scaling, cropping, normalising
  double imdecode = 0;  // of the whole image by cv::imdecode, which is no part of loading

  double loading() const { return read + decode + render; }
  LoadingTimes& operator+=(const LoadingTimes& other);
};

/// Loads the images `ids` of an epoch one after the other, stage by stage, and decodes each by OpenCV too, in turns:
/// who comes first alternates, so that a slow moment of the machine hits both alike.
LoadingTimes measure_stages(const ImageFiles& files, const ImageFileOptions& options, const std::vector<int64_t>& ids,
                            const Transform& transform, int64_t epoch);

/// Images a second that the loader makes of an epoch, its threads' start included. With several threads some have
/// nothing left to do at the end: an epoch should have many more batches than there are threads.
double measure_loader(Loader& loader, int64_t epoch);

}  // namespace settrain
