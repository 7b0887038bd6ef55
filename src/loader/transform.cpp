#include "src/loader/transform.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <utility>

#include "src/loader/taps.h"

namespace settrain {
namespace {

bool holds(const ImagePart& part, const Box& box) {
  return box.top >= part.top && box.left >= part.left && box.top + box.height <= part.top + part.pixels.height &&
         box.left + box.width <= part.left + part.pixels.width;
}

// The part of [crop, crop + size) that lies within the scaled pixels.
struct Visible {
  int64_t begin, size;

  Visible(int64_t crop, int64_t crop_size, int64_t scaled)
      : begin(std::clamp<int64_t>(crop, 0, scaled)),
        size(std::max<int64_t>(0, std::min(crop + crop_size, scaled) - begin)) {}
};

// Writes bytes as they are, rows of interleaved pixels.
PixelWriter byte_writer(size_t channels) {
  const Normalisation none{std::vector(channels, 0.0F), std::vector(channels, 1.0F)};
  return {none, {PixelType::kByte, /*channels_last=*/true}};
}

std::vector<uint8_t> colour_of(EraseFill fill, const Normalisation& normalisation) {
  std::vector<uint8_t> colour;
  for (const float mean : normalisation.mean) {
    const float value = fill == EraseFill::kMean ? std::nearbyint(255 * mean) : 0;
    colour.push_back(static_cast<uint8_t>(std::clamp(value, 0.0F, 255.0F)));
  }
  return colour;
}

}  // namespace

// Fills rows_ with the visible columns of the rows of needed_pixels(view).
void ViewRenderer::prepare_rows(const ImagePart& part, const View& view, int64_t first_column, int64_t columns) {
  const Box box = needed_pixels(view);
  const int64_t channels = part.pixels.channels, top = box.top - part.top, left = box.left - part.left;
  first_row_ = box.top - view.source.top;
  rows_.clear();
  const bool same_width = view.source.width == view.width;
  std::optional<Taps> taps;
  if (!same_width) {
    taps.emplace(view.filter, view.source.width, view.width, first_column, columns);
    pixel_taps_.clear();
    const int64_t first =
        box.left - view.source.left;  // taps count from the left of the source, rows start at the left of the box
    for (int64_t i = 0; i < columns; ++i)
      pixel_taps_.push_back({taps->first(i) - first, taps->weights(i), taps->count(i)});
    resized_.resize(static_cast<size_t>(box.height * columns * channels));
  }
  for (int64_t y = 0; y < box.height; ++y)
    rows_.push_back(part.pixels.pixels.data() + ((top + y) * part.pixels.width + left) * channels);
  if (same_width) return;
  settrain::resize_rows(rows_.data(), box.height, pixel_taps_.data(), columns, channels, resized_.data());
  for (int64_t y = 0; y < box.height; ++y) rows_[static_cast<size_t>(y)] = resized_.data() + y * columns * channels;
}

void ViewRenderer::render(const ImagePart& part, const View& view, const PixelWriter& writer, void* image) {
  const int64_t channels = part.pixels.channels;
  if (!holds(part, needed_pixels(view))) throw std::invalid_argument("ViewRenderer: not the pixels that are needed");
  if (channels != writer.channels()) throw std::invalid_argument("ViewRenderer: the image has other channels");
  const Box& crop = view.crop;
  const Visible rows(crop.top, crop.height, view.height), columns(crop.left, crop.width, view.width);
  const bool all_black = rows.size == 0 || columns.size == 0;
  if (!all_black) prepare_rows(part, view, columns.begin, columns.size);
  std::optional<Taps> taps;
  if (!all_black && view.source.height != view.height) {
    taps.emplace(view.filter, view.source.height, view.height, rows.begin, rows.size);
    mixed_.resize(static_cast<size_t>(columns.size * channels));
  }
  line_.assign(static_cast<size_t>(crop.width * channels), 0);
  for (int64_t y = 0; y < crop.height; ++y) {
    const int64_t i = crop.top + y - rows.begin;  // of the visible rows
    if (all_black || i < 0 || i >= rows.size) {
      std::fill(line_.begin(), line_.end(), uint8_t{0});
      writer.write_row(line_.data(), y, crop.height, crop.width, view.flip, image);
      continue;
    }
    const uint8_t* row = nullptr;
    if (taps) {
      mix_rows(rows_.data() + (taps->first(i) - first_row_), taps->weights(i), taps->count(i), std::ssize(mixed_),
               mixed_.data());
      row = mixed_.data();
    } else {
      row = rows_[static_cast<size_t>(rows.begin + i - first_row_)];
    }
    if (columns.size < crop.width) {
      std::fill(line_.begin(), line_.end(), uint8_t{0});
      std::copy_n(row, columns.size * channels, line_.begin() + (columns.begin - crop.left) * channels);
      row = line_.data();
    }
    writer.write_row(row, y, crop.height, crop.width, view.flip, image);
  }
}

Transform::Transform(Pipeline pipeline, const Normalisation& normalisation, PixelFormat format)
    : pipeline_(std::move(pipeline)),
      writer_(normalisation, format),
      byte_writer_(byte_writer(normalisation.mean.size())),
      erased_(colour_of(pipeline_.augmentation().erase_fill(), normalisation)) {
  if (channels() == 1) pipeline_.augmentation().refuse_colours();
}

void Transform::operator()(const ImageSource& images, int64_t id, int64_t epoch, TransformMemory& memory, void* output,
                           int64_t repetition) const {
  std::vector<View> views;
  const auto choose = [&](int64_t height, int64_t width) {
    views = pipeline_.views_of(height, width, epoch, id, repetition);
    return needed_pixels(views);
  };
  images.read_part(id, choose, memory.part);
  render(memory.part, views, pipeline_.changes_of(epoch, id, repetition), memory, output);
}

void Transform::render(const ImagePart& part, const std::vector<View>& views, ViewRenderer& renderer,
                       void* output) const {
  auto* next = static_cast<std::byte*>(output);
  for (const View& view : views) {
    renderer.render(part, view, writer_, next);
    next += bytes_per_view();
  }
}

void Transform::render(const ImagePart& part, const std::vector<View>& views, const PixelChanges& changes,
                       TransformMemory& memory, void* output) const {
  if (changes.empty()) return render(part, views, memory.renderer, output);
  auto* next = static_cast<std::byte*>(output);
  Image& image = memory.view;
  for (const View& view : views) {
    image.height = view.crop.height;
    image.width = view.crop.width;
    image.channels = channels();
    const int64_t row = image.width * image.channels;
    image.pixels.resize(static_cast<size_t>(image.height * row));
    memory.renderer.render(part, view, byte_writer_, image.pixels.data());
    for (const ImageOperation& operation : changes.operations) memory.editor.apply(operation, image);
    for (const Box& box : changes.erased) fill_box(box, erased_, image);
    for (int64_t y = 0; y < image.height; ++y) {
      writer_.write_row(image.pixels.data() + y * row, y, image.height, image.width, /*flip=*/false, next);
    }
    next += bytes_per_view();
  }
}

int64_t Transform::bytes_per_view() const {
  const PixelType type = format().type;
  const int64_t bytes = type == PixelType::kFloat ? 4 : type == PixelType::kBFloat16 ? 2 : 1;
  return pipeline_.height() * pipeline_.width() * channels() * bytes;
}

}  // namespace settrain
