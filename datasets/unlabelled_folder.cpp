#include "datasets/unlabelled_folder.h"

#include <fmt/format.h>

#include "datasets/class_folders.h"
#include "datasets/find_images.h"
#include "src/core/error.h"

namespace settrain {
namespace {

FileTable images_of(const std::filesystem::path& root) {
  FileTable files(root);
  find_images("", files);
  if (files.size() == 0) {
    throw DataError(fmt::format("no {} file in '{}' or the folders in it", kImageEndings, root.string()));
  }
  measure_found(files);
  return files;
}

}  // namespace

UnlabelledFolder::UnlabelledFolder(const std::filesystem::path& root, const ImageFileOptions& options)
    : ImageFiles(images_of(root), options) {}

}  // namespace settrain
