#include "src/report/thumbnail.h"

#include <openssl/evp.h>

#include <algorithm>
#include <vector>

#include "datasets/decode_image.h"
#include "src/loader/pixel_writer.h"
#include "src/loader/transform.h"

namespace settrain {
namespace {

View shrunk_view(int64_t height, int64_t width, int64_t side) {
  View view = whole_view(height, width);
  const int64_t longer = std::max(height, width);
  if (longer <= side) return view;
  view.height = std::max<int64_t>(1, height * side / longer);
  view.width = std::max<int64_t>(1, width * side / longer);
  view.crop = {0, 0, view.height, view.width};
  return view;
}

}  // namespace

Image thumbnail(const ImageSource& images, int64_t id, int64_t side) {
  View view;
  ImagePart part;
  images.read_part(
      id,
      [&](int64_t height, int64_t width) {
        view = shrunk_view(height, width, side);
        return needed_pixels(view);
      },
      part);
  const auto channels = static_cast<size_t>(part.pixels.channels);
  const PixelWriter writer({std::vector<float>(channels, 0.0F), std::vector<float>(channels, 1.0F)},
                           {PixelType::kByte, true});
  Image image{view.height, view.width, part.pixels.channels, {}};
  image.pixels.resize(static_cast<size_t>(view.height * view.width) * channels);
  ViewRenderer().render(part, view, writer, image.pixels.data());
  return image;
}

std::string picture_uri(const Image& image) {
  const std::vector<uint8_t> png = encode_png(image);
  std::string base64((png.size() + 2) / 3 * 4, '\0');
  EVP_EncodeBlock(reinterpret_cast<uint8_t*>(base64.data()), png.data(), static_cast<int>(png.size()));
  return "data:image/png;base64," + base64;
}

}  // namespace settrain
