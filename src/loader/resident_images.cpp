#include "src/loader/resident_images.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/index_select.h>

#include <limits>
#include <stdexcept>
#include <string>

namespace settrain {
namespace {

// A row or column beyond the image. Negative with any other place added to it, so that its pixels become the first one,
// which is black.
constexpr int64_t kBeyond = std::numeric_limits<int64_t>::min() / 2;

}  // namespace

ResidentImages::ResidentImages(const MemoryImages& images, at::Device device)
    : images_(images.size()),
      height_(images.height()),
      width_(images.width()),
      pixels_(at::empty({1 + images.size() * images.height() * images.width(), images.channels()},
                        at::TensorOptions(device).dtype(at::kByte))) {
  const at::Tensor source =
      at::from_blob(const_cast<uint8_t*>(images.pixels().data()), {pixels_.size(0) - 1, images.channels()}, at::kByte);
  pixels_.narrow(0, 0, 1).zero_();
  pixels_.narrow(0, 1, source.size(0)).copy_(source);
}

void ResidentImages::locate(int64_t id, const View& view, int64_t* places) const {
  if (id < 0 || id >= images_) throw std::out_of_range("ResidentImages: no image " + std::to_string(id));
  const Box &source = view.source, &crop = view.crop;
  if (source != Box{0, 0, height_, width_} || view.height != height_ || view.width != width_)
    throw std::invalid_argument("ResidentImages: the view is scaled, or of an image of another size");
  for (int64_t i = 0; i < crop.height; ++i) {
    const int64_t y = crop.top + i;
    *places++ = y >= 0 && y < height_ ? 1 + (id * height_ + y) * width_ : kBeyond;
  }
  for (int64_t i = 0; i < crop.width; ++i) {
    const int64_t x = crop.left + (view.flip ? crop.width - 1 - i : i);
    *places++ = x >= 0 && x < width_ ? x : kBeyond;
  }
}

at::Tensor ResidentImages::render(const at::Tensor& places, int64_t height, int64_t width, bool channels_last) const {
  const int64_t views = places.size(0);
  const at::Tensor there = places.to(pixels_.device(), /*non_blocking=*/true);
  const at::Tensor rows = there.narrow(1, 0, height).unsqueeze(2),
                   columns = there.narrow(1, height, width).unsqueeze(1);
  const at::Tensor of_pixels = (rows + columns).clamp_min_(0).view({-1});
  at::Tensor images = at::empty({views, channels(), height, width}, pixels_.options(),
                                channels_last ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous);
  const at::Tensor by_pixel = images.permute({0, 2, 3, 1});
  if (by_pixel.is_contiguous()) {  // one channel is, in either layout
    at::Tensor flat = by_pixel.view({-1, channels()});
    at::index_select_out(flat, pixels_, 0, of_pixels);
  } else {
    images.copy_(at::index_select(pixels_, 0, of_pixels).view(by_pixel.sizes()).permute({0, 3, 1, 2}));
  }
  return images;
}

}  // namespace settrain
