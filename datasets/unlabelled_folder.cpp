#include "datasets/unlabelled_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <opencv2/core.hpp>
#include <string>

#include "datasets/decode_image.h"
#include "src/core/digest.h"
#include "src/core/error.h"

namespace settrain {
namespace {

bool is_image(const std::filesystem::path& file) {
  static constexpr std::array<const char*, 7> kEndings = {".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff"};
  std::string ending = file.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(), [](unsigned char c) { return std::tolower(c); });
  return std::find(kEndings.begin(), kEndings.end(), ending) != kEndings.end();
}

std::vector<std::filesystem::path> find_images(const std::filesystem::path& root) {
  std::vector<std::filesystem::path> files;
  for (auto entry = std::filesystem::recursive_directory_iterator(root);
       entry != std::filesystem::recursive_directory_iterator(); ++entry) {
    const bool hidden = entry->path().filename().string().starts_with('.');
    if (hidden) entry.disable_recursion_pending();
    if (!hidden && entry->is_regular_file() && is_image(entry->path())) files.push_back(entry->path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

UnlabelledFolder::UnlabelledFolder(const std::filesystem::path& root, int64_t channels, int64_t height, int64_t width)
    : channels_(channels), height_(height), width_(width) {
  try {
    files_ = find_images(root);
  } catch (const std::filesystem::filesystem_error& error) {
    throw DataError(fmt::format("cannot list the images of '{}': {}", root.string(), error.code().message()));
  }
  if (files_.empty()) {
    throw DataError(fmt::format("no .jpg, .jpeg, .png, .bmp, .webp, .tif or .tiff file in '{}' or the folders in it",
                                root.string()));
  }
  // OpenCV's own threads would compete with those that compute; images are read by several threads at a time anyway.
  cv::setNumThreads(1);
}

void UnlabelledFolder::read(int64_t id, Image& image) const {
  image = resize_and_crop(decode_image(files_.at(static_cast<size_t>(id)), channels_), height_, width_);
}

std::string UnlabelledFolder::digest() const {
  Sha256 sha;
  for (const std::filesystem::path& file : files_) {
    std::error_code ignored;
    sha.add(fmt::format("{} {}\n", file.filename().string(), std::filesystem::file_size(file, ignored)));
  }
  return sha.hex();
}

}  // namespace settrain
