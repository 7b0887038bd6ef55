#include "datasets/unlabelled_folder.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "datasets/find_images.h"
#include "src/core/error.h"

namespace settrain {
namespace {

std::vector<std::filesystem::path> images_of(const std::filesystem::path& root) {
  std::vector<std::filesystem::path> files = find_images(root);
  if (files.empty()) {
    throw DataError(fmt::format("no {} file in '{}' or the folders in it", kImageEndings, root.string()));
  }
  return files;
}

}  // namespace

UnlabelledFolder::UnlabelledFolder(const std::filesystem::path& root, const ImageFileOptions& options)
    : ImageFiles(images_of(root), options) {}

}  // namespace settrain
