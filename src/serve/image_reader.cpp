#include "src/serve/image_reader.h"

#include <fmt/format.h>

#include <new>
#include <span>
#include <stdexcept>
#include <utility>

#include "datasets/image_header.h"
#include "src/core/process.h"
#include "src/core/text.h"
#include "src/loader/loader.h"
#include "src/serve/http/http_server.h"

namespace settrain {

// One of the reader's memories, for as long as an image is decoded.
class ImageReader::Turn {
 public:
  Turn(ImageReader& reader, bool is_large, Clock::time_point deadline) : reader_(reader), is_large_(is_large) {
    std::unique_lock lock(reader_.mutex_);
    const auto is_free = [this] { return !reader_.free_.empty() && !(is_large_ && reader_.decodes_large_); };
    if (!reader_.changed_.wait_until(lock, deadline, is_free) || Clock::now() > deadline) {
      throw HttpError(503, "too many images are being decoded at a time");
    }
    memory_ = std::move(reader_.free_.back());
    reader_.free_.pop_back();
    reader_.decodes_large_ |= is_large_;
  }
  ~Turn() {
    if (is_large_) {
      *memory_ = {};
      give_back_freed_memory();  // which stays with the process elsewhere, for tensors of the same sizes
    }
    {
      const std::lock_guard lock(reader_.mutex_);
      reader_.free_.push_back(std::move(memory_));  // there is room: it was taken out
      if (is_large_) reader_.decodes_large_ = false;
    }
    reader_.changed_.notify_all();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  TransformMemory& memory() { return *memory_; }

 private:
  ImageReader& reader_;
  bool is_large_;
  std::unique_ptr<TransformMemory> memory_{};
};

ImageReader::ImageReader(const TrainedModel& model, int64_t at_once, int64_t most_pixels)
    : transform_(evaluation_transform(model.loader, model.card.image_height, model.card.image_width, model.view_use)),
      decode_(decode_options(model)),
      most_pixels_(most_pixels) {
  prepare_decoding();
  for (int64_t i = 0; i < at_once; ++i) free_.push_back(std::make_unique<TransformMemory>());
}

at::Tensor ImageReader::no_image() const {
  return empty_views(transform_.pipeline().views(), transform_).zero_();
}

at::Tensor ImageReader::read(const Upload& image, Clock::time_point deadline) {
  const std::span bytes(reinterpret_cast<const uint8_t*>(image.bytes.data()), image.bytes.size());
  const ImageHeader header = parse_image_header(bytes);
  if (header.height == 0 || header.width == 0) {
    throw HttpError(400, fmt::format("{} cannot be read: is no JPEG, PNG, BMP, WebP or TIFF image", image.name));
  }
  if (header.width > most_pixels_ / header.height) {
    throw HttpError(413, fmt::format("{} has {} x {} pixels, more than the {} that are taken", image.name, header.width,
                                     header.height, format_count(most_pixels_)));
  }
  Turn turn(*this, header.width > kLargeImage / header.height, deadline);
  std::vector<View> views;
  const auto choose = [&](int64_t height, int64_t width) {
    views = transform_.pipeline().views_of(height, width, /*epoch=*/0, /*sample_id=*/0);
    return needed_pixels(views);
  };
  try {
    decode_image(bytes, decode_, choose, turn.memory().part);
  } catch (const std::bad_alloc&) {
    throw HttpError(503, fmt::format("there is not enough memory at the moment to decode {}", image.name));
  } catch (const std::runtime_error& error) {
    throw HttpError(400, fmt::format("{} cannot be read: {}", image.name, error.what()));
  }
  at::Tensor input = empty_views(transform_.pipeline().views(), transform_);
  transform_.render(turn.memory().part, views, turn.memory().renderer, input.mutable_data_ptr());
  return input;
}

}  // namespace settrain
