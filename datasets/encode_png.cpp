#include "datasets/encode_png.h"

#include <opencv2/core.hpp>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>
#include <stdexcept>

namespace settrain {

std::vector<uint8_t> encode_png(const Image& image) {
  if (image.channels != 1 && image.channels != 3) throw std::invalid_argument("a picture has 1 or 3 channels");
  const cv::Mat rgb(static_cast<int>(image.height), static_cast<int>(image.width),
                    CV_8UC(static_cast<int>(image.channels)), const_cast<uint8_t*>(image.pixels.data()));
  cv::Mat bgr;
  if (image.channels == 3) cv::cvtColor(rgb, bgr, cv::COLOR_RGB2BGR);
  std::vector<uint8_t> png;
  cv::imencode(".png", image.channels == 3 ? bgr : rgb, png, {cv::IMWRITE_PNG_COMPRESSION, 9});
  return png;
}

}  // namespace settrain
