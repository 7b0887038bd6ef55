#include "datasets/resize.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>
#include <vector>

namespace settrain {
namespace {

// Weights are whole numbers of 2^-22. With 8-bit pixels a sum of them stays below 2^31.
constexpr int kPrecision = 22;
constexpr int32_t kHalf = 1 << (kPrecision - 1);

// What each pixel of one axis of the result is made of.
struct Taps {
  std::vector<int64_t> first, count;  // [out] input pixels
  std::vector<int32_t> weights;       // [out, most]
  int64_t most = 0;

  const int32_t* of(int64_t out) const { return weights.data() + out * most; }
};

Taps bilinear_taps(int64_t in, int64_t out) {
  const double scale = static_cast<double>(in) / static_cast<double>(out);
  const double support = std::max(scale, 1.0);
  Taps taps;
  taps.most = static_cast<int64_t>(std::ceil(support)) * 2 + 1;
  taps.weights.resize(static_cast<size_t>(out * taps.most));
  std::vector<double> exact(static_cast<size_t>(taps.most));
  for (int64_t x = 0; x < out; ++x) {
    const double center = (static_cast<double>(x) + 0.5) * scale;
    const int64_t first = std::max<int64_t>(0, static_cast<int64_t>(center - support + 0.5));
    const int64_t count = std::min(in, static_cast<int64_t>(center + support + 0.5)) - first;
    double sum = 0;
    for (int64_t k = 0; k < count; ++k) {
      const double distance = (static_cast<double>(k + first) - center + 0.5) * (1.0 / support);
      exact[static_cast<size_t>(k)] = std::max(0.0, 1.0 - std::abs(distance));
      sum += exact[static_cast<size_t>(k)];
    }
    for (int64_t k = 0; k < count; ++k) {
      taps.weights[static_cast<size_t>(x * taps.most + k)] =
          static_cast<int32_t>(0.5 + exact[static_cast<size_t>(k)] / sum * (1 << kPrecision));
    }
    taps.first.push_back(first);
    taps.count.push_back(count);
  }
  return taps;
}

// Weights are positive and add up to about 1: nothing has to be clamped from below.
uint8_t rounded(int32_t sum) {
  return static_cast<uint8_t>(std::min(sum >> kPrecision, 255));
}

// One row of pixels with `Channels` channels.
template <int64_t Channels>
void resize_row(const uint8_t* in, const Taps& taps, int64_t out_width, uint8_t* out) {
  for (int64_t x = 0; x < out_width; ++x) {
    const uint8_t* pixel = in + taps.first[static_cast<size_t>(x)] * Channels;
    const int32_t* weights = taps.of(x);
    int32_t sums[Channels];
    for (int64_t c = 0; c < Channels; ++c) sums[c] = kHalf;
    for (int64_t k = 0; k < taps.count[static_cast<size_t>(x)]; ++k, pixel += Channels) {
      for (int64_t c = 0; c < Channels; ++c) sums[c] += pixel[c] * weights[k];
    }
    for (int64_t c = 0; c < Channels; ++c) *out++ = rounded(sums[c]);
  }
}

Image resize_rows(const Image& in, int64_t width) {
  Image out{in.height, width, in.channels, std::vector<uint8_t>(static_cast<size_t>(in.height * width * in.channels))};
  const Taps taps = bilinear_taps(in.width, width);
  const auto row = in.channels == 1 ? resize_row<1> : resize_row<3>;
  for (int64_t y = 0; y < in.height; ++y) {
    row(in.pixels.data() + y * in.width * in.channels, taps, width, out.pixels.data() + y * width * in.channels);
  }
  return out;
}

Image resize_columns(const Image& in, int64_t height) {
  const int64_t stride = in.width * in.channels;
  Image out{height, in.width, in.channels, std::vector<uint8_t>(static_cast<size_t>(height * stride))};
  const Taps taps = bilinear_taps(in.height, height);
  std::vector<int32_t> sums(static_cast<size_t>(stride));
  for (int64_t y = 0; y < height; ++y) {
    std::fill(sums.begin(), sums.end(), kHalf);
    for (int64_t k = 0; k < taps.count[static_cast<size_t>(y)]; ++k) {
      const uint8_t* row = in.pixels.data() + (taps.first[static_cast<size_t>(y)] + k) * stride;
      const int32_t weight = taps.of(y)[k];
      for (int64_t j = 0; j < stride; ++j) sums[static_cast<size_t>(j)] += row[j] * weight;
    }
    std::transform(sums.begin(), sums.end(), out.pixels.begin() + y * stride, rounded);
  }
  return out;
}

// Half of a number of pixels, halves to the even number, as Python's round().
int64_t half_to_even(int64_t pixels) {
  return static_cast<int64_t>(std::nearbyint(static_cast<double>(pixels) / 2));
}

Image padded(const Image& image, int64_t top, int64_t left, int64_t height, int64_t width) {
  Image out{height, width, image.channels, std::vector<uint8_t>(static_cast<size_t>(height * width * image.channels))};
  const int64_t row = image.width * image.channels;
  for (int64_t y = 0; y < image.height; ++y) {
    std::copy_n(image.pixels.begin() + y * row, row, out.pixels.begin() + ((top + y) * width + left) * image.channels);
  }
  return out;
}

}  // namespace

Image crop(const Image& image, int64_t top, int64_t left, int64_t height, int64_t width) {
  if (top < 0 || left < 0 || height < 0 || width < 0 || top + height > image.height || left + width > image.width) {
    throw std::invalid_argument("crop: not inside the image");
  }
  Image out{height, width, image.channels, {}};
  out.pixels.reserve(static_cast<size_t>(height * width * image.channels));
  for (int64_t y = 0; y < height; ++y) {
    const auto first = image.pixels.begin() + ((top + y) * image.width + left) * image.channels;
    out.pixels.insert(out.pixels.end(), first, first + width * image.channels);
  }
  return out;
}

Image resize_bilinear(const Image& image, int64_t height, int64_t width) {
  if (height < 1 || width < 1) throw std::invalid_argument("resize_bilinear: sizes below 1");
  if (image.width == width) return image.height == height ? image : resize_columns(image, height);
  Image rows = resize_rows(image, width);
  return rows.height == height ? rows : resize_columns(rows, height);
}

Image resize_short_side(const Image& image, int64_t size) {
  const int64_t shorter = std::min(image.height, image.width), longer = std::max(image.height, image.width);
  const auto scaled = static_cast<int64_t>(static_cast<double>(size * longer) / static_cast<double>(shorter));
  return image.height < image.width ? resize_bilinear(image, size, scaled) : resize_bilinear(image, scaled, size);
}

Image resize_and_crop(const Image& image, int64_t height, int64_t width) {
  const double scale = std::max(static_cast<double>(height) / static_cast<double>(image.height),
                                static_cast<double>(width) / static_cast<double>(image.width));
  const auto scaled = [scale](int64_t side, int64_t least) {
    return std::max<int64_t>(least, std::lround(scale * static_cast<double>(side)));
  };
  return center_crop(resize_bilinear(image, scaled(image.height, height), scaled(image.width, width)), height, width);
}

Image center_crop(const Image& image, int64_t height, int64_t width) {
  if (image.height < height || image.width < width) {
    const int64_t lacking_rows = std::max<int64_t>(0, height - image.height);
    const int64_t lacking_columns = std::max<int64_t>(0, width - image.width);
    return center_crop(padded(image, lacking_rows / 2, lacking_columns / 2, image.height + lacking_rows,
                              image.width + lacking_columns),
                       height, width);
  }
  return crop(image, half_to_even(image.height - height), half_to_even(image.width - width), height, width);
}

}  // namespace settrain
