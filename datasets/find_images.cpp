#include "datasets/find_images.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "src/core/error.h"

namespace settrain {

bool is_image(const std::filesystem::path& file) {
  static constexpr std::array<const char*, 7> kEndings = {".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff"};
  std::string ending = file.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(), [](unsigned char c) { return std::tolower(c); });
  return std::find(kEndings.begin(), kEndings.end(), ending) != kEndings.end();
}

namespace {

// The order of std::filesystem::path: folder by folder, so that a slash comes before all else.
bool path_less(std::string_view a, std::string_view b) {
  const auto rank = [](char c) { return c == '/' ? 0 : static_cast<unsigned char>(c); };
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(),
                                      [&](char x, char y) { return rank(x) < rank(y); });
}

}  // namespace

void find_images(const std::filesystem::path& folder, FileTable& files) {
  const std::filesystem::path start = files.root() / folder;
  const size_t above = start.string().size() - folder.string().size();
  FileTable found;
  try {
    for (auto entry = std::filesystem::recursive_directory_iterator(start);
         entry != std::filesystem::recursive_directory_iterator(); ++entry) {
      const bool hidden = entry->path().filename().string().starts_with('.');
      if (hidden) entry.disable_recursion_pending();
      if (hidden || !is_image(entry->path()) || entry->is_directory()) continue;  // a link to nothing is not left out
      std::string_view name = entry->path().native();
      name.remove_prefix(above);
      name.remove_prefix(std::min(name.find_first_not_of('/'), name.size()));
      found.add(name);
    }
  } catch (const std::filesystem::filesystem_error& error) {
    throw DataError(fmt::format("cannot list the images of '{}': {}", start.string(), error.code().message()));
  }
  std::vector<int64_t> order(static_cast<size_t>(found.size()));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return path_less(found.name(a), found.name(b)); });
  for (const int64_t i : order) files.add(found.name(i));
}

}  // namespace settrain
