#include "models/image_size.h"

#include <fmt/format.h>

#include <string>

#include "src/core/error.h"

namespace settrain {
namespace {

[[noreturn]] void refuse(std::string_view model, const std::string& what, const ModelContext& images) {
  throw KeyError("model.name",
                 fmt::format("{} takes {}, the data's are {}x{}", model, what, images.height, images.width));
}

}  // namespace

void check_least_size(std::string_view model, int64_t least, const ModelContext& images) {
  if (images.height >= least && images.width >= least) return;
  refuse(model, fmt::format("images of at least {0}x{0} pixels", least), images);
}

void check_square_of_patches(std::string_view model, int64_t patch, const ModelContext& images) {
  if (images.height == images.width && images.height > 0 && images.height % patch == 0) return;
  refuse(model, fmt::format("square images whose side is a multiple of {} pixels", patch), images);
}

}  // namespace settrain
