#include "src/loader/transform.h"

#include <utility>

namespace settrain {

Transform::Transform(Pipeline pipeline, const Normalisation& normalisation, PixelFormat format)
    : pipeline_(std::move(pipeline)), writer_(normalisation, format) {}

void Transform::operator()(const ImageSource& images, int64_t id, int64_t epoch, TransformMemory& memory,
                           void* output) const {
  std::vector<View> views;
  const auto choose = [&](int64_t height, int64_t width) {
    views = pipeline_.views_of(height, width, epoch, id);
    Box box = needed_pixels(views.front());
    for (const View& view : views) box = around(box, needed_pixels(view));
    return box;
  };
  images.read_part(id, choose, memory.part);
  const int64_t bytes = pipeline_.height() * pipeline_.width() * channels() * bytes_of(format().type);
  auto* next = static_cast<std::byte*>(output);
  for (const View& view : views) {
    memory.renderer.render(memory.part, view, writer_, next);
    next += bytes;
  }
}

int64_t bytes_of(PixelType type) {
  return type == PixelType::kFloat ? 4 : type == PixelType::kBFloat16 ? 2 : 1;
}

}  // namespace settrain
