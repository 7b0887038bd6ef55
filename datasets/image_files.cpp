#include "datasets/image_files.h"

#include <fmt/format.h>

#include <opencv2/core.hpp>
#include <string_view>
#include <utility>

#include "datasets/decode_image.h"
#include "datasets/resize.h"
#include "src/core/digest.h"

namespace settrain {

config::Keys ImageFileOptions::keys() {
  return {
      config::key("image_size", &ImageFileOptions::image_size, 0,
                  "Height and width to which images are resized and cropped.")
          .at_least(4)
          .at_most(4096)
          .in("pixels"),
      config::key("grey", &ImageFileOptions::grey, false, "Decode to one grey channel instead of three of colour.")};
}

ImageFiles::ImageFiles(FileTable files, int64_t channels, int64_t height, int64_t width)
    : files_(std::move(files)), channels_(channels), height_(height), width_(width) {
  // OpenCV's own threads would compete with those that compute; images are read by several threads at a time anyway.
  cv::setNumThreads(1);
}

void ImageFiles::read(int64_t id, Image& image) const {
  image = resize_and_crop(decode_image(files_.path(id), channels_), height_, width_);
}

std::string ImageFiles::digest() const {
  Sha256 sha;
  for (int64_t i = 0; i < size(); ++i) {
    const std::string_view name = files_.name(i);
    sha.add(fmt::format("{} {}\n", name.substr(name.rfind('/') + 1), files_.file_size(i)));
  }
  return sha.hex();
}

}  // namespace settrain
