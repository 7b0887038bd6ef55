#include "src/serve/image_reader.h"

#include <fmt/format.h>

#include <new>
#include <span>
#include <stdexcept>
#include <utility>

#include "datasets/image_header.h"
#include "src/core/human.h"
#include "src/loader/loader.h"
#include "src/serve/http/http_error.h"

namespace settrain {
namespace {

// Memory that a large image took is not kept for small ones.
constexpr size_t kMostBytesKept = 16 << 20;

}  // namespace

// One of the reader's memories, for as long as an image is decoded.
class ImageReader::Borrowed {
 public:
  explicit Borrowed(ImageReader& reader) : reader_(reader) {
    std::unique_lock lock(reader_.mutex_);
    reader_.is_back_.wait(lock, [this] { return !reader_.free_.empty(); });
    memory_ = std::move(reader_.free_.back());
    reader_.free_.pop_back();
  }
  ~Borrowed() {
    if (memory_->part.pixels.pixels.capacity() > kMostBytesKept) *memory_ = {};
    const std::lock_guard lock(reader_.mutex_);
    reader_.free_.push_back(std::move(memory_));  // there is room: it was taken out
    reader_.is_back_.notify_one();
  }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;

  TransformMemory& operator*() { return *memory_; }

 private:
  ImageReader& reader_;
  std::unique_ptr<TransformMemory> memory_{};
};

ImageReader::ImageReader(const TrainedModel& model, int64_t at_once, int64_t most_pixels)
    : transform_(evaluation_transform(model.loader, model.card.image_height, model.card.image_width, model.view_use)),
      decode_(decode_options(model)),
      most_pixels_(most_pixels) {
  prepare_decoding();
  for (int64_t i = 0; i < at_once; ++i) free_.push_back(std::make_unique<TransformMemory>());
}

at::Tensor ImageReader::read(const Upload& image) {
  const std::span bytes(reinterpret_cast<const uint8_t*>(image.bytes.data()), image.bytes.size());
  const ImageHeader header = parse_image_header(bytes);
  if (header.height > 0 && header.width > most_pixels_ / header.height) {
    throw HttpError(413, fmt::format("{} has {} x {} pixels, more than the {} that are taken", image.name, header.width,
                                     header.height, format_count(most_pixels_)));
  }
  at::Tensor views = empty_views(this->views(), transform_);
  Borrowed memory(*this);
  std::vector<View> wanted;
  const auto choose = [&](int64_t height, int64_t width) {
    wanted = transform_.pipeline().views_of(height, width, /*epoch=*/0, /*sample_id=*/0);
    return needed_pixels(wanted);
  };
  try {
    decode_image(bytes, decode_, choose, (*memory).part);
  } catch (const std::runtime_error& error) {
    throw HttpError(400, fmt::format("{} cannot be read: {}", image.name, error.what()));
  } catch (const std::bad_alloc&) {
    throw HttpError(503, fmt::format("there is not enough memory at the moment to decode {}", image.name));
  }
  transform_.render((*memory).part, wanted, (*memory).renderer, views.mutable_data_ptr());
  return views;
}

}  // namespace settrain
