#include "datasets/find_images.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

#include "src/core/error.h"

namespace settrain {

bool is_image(const std::filesystem::path& file) {
  static constexpr std::array<const char*, 7> kEndings = {".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff"};
  std::string ending = file.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(), [](unsigned char c) { return std::tolower(c); });
  return std::find(kEndings.begin(), kEndings.end(), ending) != kEndings.end();
}

std::vector<std::filesystem::path> find_images(const std::filesystem::path& root) {
  std::vector<std::filesystem::path> files;
  try {
    for (auto entry = std::filesystem::recursive_directory_iterator(root);
         entry != std::filesystem::recursive_directory_iterator(); ++entry) {
      const bool hidden = entry->path().filename().string().starts_with('.');
      if (hidden) entry.disable_recursion_pending();
      if (!hidden && entry->is_regular_file() && is_image(entry->path())) files.push_back(entry->path());
    }
  } catch (const std::filesystem::filesystem_error& error) {
    throw DataError(fmt::format("cannot list the images of '{}': {}", root.string(), error.code().message()));
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace settrain
