#include "datasets/image_files.h"

#include <fmt/format.h>

#include <opencv2/core.hpp>
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

ImageFiles::ImageFiles(std::vector<std::filesystem::path> files, int64_t channels, int64_t height, int64_t width)
    : files_(std::move(files)), channels_(channels), height_(height), width_(width) {
  // OpenCV's own threads would compete with those that compute; images are read by several threads at a time anyway.
  cv::setNumThreads(1);
}

void ImageFiles::read(int64_t id, Image& image) const {
  image = resize_and_crop(decode_image(files_.at(static_cast<size_t>(id)), channels_), height_, width_);
}

std::string ImageFiles::digest() const {
  Sha256 sha;
  for (const std::filesystem::path& file : files_) {
    std::error_code ignored;
    sha.add(fmt::format("{} {}\n", file.filename().string(), std::filesystem::file_size(file, ignored)));
  }
  return sha.hex();
}

}  // namespace settrain
