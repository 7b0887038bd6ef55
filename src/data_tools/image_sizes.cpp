#include "src/data_tools/image_sizes.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <utility>

#include "datasets/decode_image.h"
#include "datasets/image_files.h"
#include "datasets/image_header.h"
#include "datasets/load_data.h"
#include "src/core/interrupt.h"
#include "src/core/ordered_prefetch.h"

namespace settrain {
namespace {

// The header of a file; none where it cannot be read.
std::optional<ImageHeader> read_header(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::vector<uint8_t> bytes;
  ImageHeader header;
  // Nearly every header lies in the first bytes; a TIFF's may be at the end.
  for (const size_t size : {size_t{1} << 16, SIZE_MAX}) {
    std::error_code error;
    const auto whole = static_cast<size_t>(std::filesystem::file_size(file, error));
    if (error) return std::nullopt;
    const size_t before = bytes.size();
    bytes.resize(std::min(size, whole));
    if (bytes.size() > before) {
      stream.read(reinterpret_cast<char*>(bytes.data() + before), static_cast<std::streamsize>(bytes.size() - before));
    }
    if (!stream) return std::nullopt;
    header = parse_image_header(bytes);
    if (header.height > 0 || header.format == ImageFormat::kUnknown || bytes.size() == whole) break;
  }
  return header;
}

}  // namespace

ImageSizes image_sizes(const Dataset& dataset, const Split& split, int64_t workers, ProgressBar& bar) {
  ImageSizes sizes;
  if (split.size() == 0) return sizes;
  const auto sample_file = [&split](int64_t sample) {
    return file_of(*split.images, split.ids[static_cast<size_t>(sample)]);
  };
  if (sample_file(0).empty()) {
    sizes.height = summarise({static_cast<double>(dataset.height)});
    sizes.width = summarise({static_cast<double>(dataset.width)});
    sizes.aspect = summarise({static_cast<double>(dataset.width) / static_cast<double>(dataset.height)});
    return sizes;
  }

  sizes.files = true;
  std::vector<double> heights, widths, aspects;
  std::map<ImageFormat, int64_t> formats;
  constexpr int64_t kAhead = 16;
  OrderedPrefetch<std::optional<ImageHeader>> headers(0, split.size(), workers, workers * kAhead,
                                                      [&](int64_t sample) { return read_header(sample_file(sample)); });
  int64_t done = 0;
  while (const auto header = headers.next()) {
    throw_if_interrupted();
    bar.update(
        {.stage = "[data] sizes of " + split.name, .done = ++done, .total = split.size(), .after = 0, .figures = ""});
    if (!*header) {
      ++sizes.without_size;
      continue;
    }
    const auto& [format, height, width, orientation] = **header;
    ++formats[format];
    sizes.rotated += orientation != 1;
    if (height == 0) {
      ++sizes.without_size;
      continue;
    }
    heights.push_back(static_cast<double>(height));
    widths.push_back(static_cast<double>(width));
    aspects.push_back(static_cast<double>(width) / static_cast<double>(height));
    sizes.too_large += height > kMostPixels / width;
  }
  for (const auto& [format, images] : formats) sizes.formats.push_back({std::string(name_of(format)), images});
  sizes.height = summarise(std::move(heights));
  sizes.width = summarise(std::move(widths));
  sizes.aspect = summarise(std::move(aspects));
  return sizes;
}

}  // namespace settrain
