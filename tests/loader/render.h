// Renders a view as bytes.
#pragma once

#include <vector>

#include "src/loader/transform.h"

namespace settrain::test {

inline Normalisation identity(int64_t channels) {
  const auto n = static_cast<size_t>(channels);
  return {std::vector<float>(n, 0.0F), std::vector<float>(n, 1.0F)};
}

/// [view.crop.height, view.crop.width] pixels, rendered from `part`.
inline Image render(const ImagePart& part, const View& view) {
  Image out{view.crop.height, view.crop.width, part.pixels.channels, {}};
  out.pixels.resize(static_cast<size_t>(out.height * out.width * out.channels));
  const PixelWriter writer(identity(out.channels), {PixelType::kByte, /*channels_last=*/true});
  ViewRenderer().render(part, view, writer, out.pixels.data());
  return out;
}

inline Image render(const Image& image, const View& view) {
  return render(ImagePart{image, 0, 0}, view);
}

}  // namespace settrain::test
