#include "src/loader/transform.h"

#include <cstddef>
#include <utility>

namespace settrain {

Transform::Transform(Pipeline pipeline, const Normalisation& normalisation, PixelFormat format)
    : pipeline_(std::move(pipeline)), writer_(normalisation, format) {}

void Transform::operator()(const ImageSource& images, int64_t id, int64_t epoch, TransformMemory& memory, void* output,
                           int64_t repetition) const {
  std::vector<View> views;
  const auto choose = [&](int64_t height, int64_t width) {
    views = pipeline_.views_of(height, width, epoch, id, repetition);
    return needed_pixels(views);
  };
  images.read_part(id, choose, memory.part);
  render(memory.part, views, memory.renderer, output);
}

void Transform::render(const ImagePart& part, const std::vector<View>& views, ViewRenderer& renderer,
                       void* output) const {
  auto* next = static_cast<std::byte*>(output);
  for (const View& view : views) {
    renderer.render(part, view, writer_, next);
    next += bytes_per_view();
  }
}

int64_t Transform::bytes_per_view() const {
  const PixelType type = format().type;
  const int64_t bytes = type == PixelType::kFloat ? 4 : type == PixelType::kBFloat16 ? 2 : 1;
  return pipeline_.height() * pipeline_.width() * channels() * bytes;
}

}  // namespace settrain
