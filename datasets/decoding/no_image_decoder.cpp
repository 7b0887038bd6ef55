// Stands in for decode_image.cpp and the decoders in a build with SETTRAIN_IMAGE_FILES=OFF.
#include <stdexcept>

#include "datasets/decoding/decode_image.h"
#include "datasets/decoding/image_decoders.h"
#include "src/core/error.h"

namespace settrain {
namespace {

constexpr const char* kNoDecoder =
    "this build of settrain has no image decoding (CMake option SETTRAIN_IMAGE_FILES=OFF), so it cannot use data sets of "
    "image files";

}  // namespace

std::string decode_image(std::span<const uint8_t>, const DecodeOptions&, const ChoosePart&, ImagePart&) {
  throw std::runtime_error(kNoDecoder);
}

std::string decode_jpeg(std::span<const uint8_t>, int64_t, const ChoosePart&, ImagePart&) {
  throw std::runtime_error(kNoDecoder);
}

void prepare_decoding() {
  throw Error(kNoDecoder);
}

std::map<std::string, std::string> image_library_versions() {
  return {};
}

std::vector<uint8_t> encode_png(const Image&) {
  throw Error("this build of settrain makes no pictures (CMake option SETTRAIN_IMAGE_FILES=OFF)");
}

}  // namespace settrain
