#include "datasets/image_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <mutex>
#include <new>
#include <span>
#include <stdexcept>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "datasets/decoding/decode_image.h"
#include "datasets/decoding/image_header.h"
#include "datasets/file_bytes.h"
#include "datasets/find_images.h"
#include "src/core/digest.h"
#include "src/core/error.h"
#include "src/core/interrupt.h"
#include "src/core/log.h"

namespace settrain {

/// The files that were read though their decoder had warned of something. Thread-safe.
class WarnedFiles {
 public:
  WarnedFiles() = default;
  WarnedFiles(const WarnedFiles&) = delete;
  WarnedFiles& operator=(const WarnedFiles&) = delete;
  ~WarnedFiles() {
    if (files_.size() < 2) return;
    log::warning(fmt::format("[data] {} files were read with warnings; the first: '{}'", files_.size(), first_));
  }

  void add(const std::string& file, const std::string& warning) {
    const std::lock_guard lock(mutex_);
    const bool is_first = files_.empty();
    files_.insert(std::hash<std::string>()(file));
    if (!is_first) return;
    first_ = file;
    log::warning(fmt::format("[data] '{}' was read with a warning: {} (later files with warnings are only counted)",
                             file, warning));
  }

  /// The one that all living sources share.
  static std::shared_ptr<WarnedFiles> of_all_sources() {
    static std::mutex mutex;
    static std::weak_ptr<WarnedFiles> current;
    const std::lock_guard lock(mutex);
    std::shared_ptr<WarnedFiles> files = current.lock();
    if (!files) current = files = std::make_shared<WarnedFiles>();
    return files;
  }

 private:
  std::mutex mutex_;
  std::unordered_set<size_t> files_;  // hashes of their paths
  std::string first_;
};

config::Keys ImageFileOptions::keys() {
  using config::key;
  using Options = ImageFileOptions;
  return {
      key("grey", &Options::grey, false, "Decode to one grey channel instead of three colour channels."),
      key("apply_orientation", &Options::apply_orientation, false,
          "Turn and mirror JPEGs, PNGs and WebPs by their EXIF orientation. torchvision, with which published results were "
          "made, ignores it.")};
}

ImageFiles::ImageFiles(FileTable files, const ImageFileOptions& options)
    : files_(std::move(files)), options_(options), warned_(WarnedFiles::of_all_sources()) {
  prepare_decoding();
}

void ImageFiles::read(int64_t id, Image& image) const {
  const std::string warning = read_quietly(id, image);
  if (!warning.empty()) warned_->add(files_.path(id).string(), warning);
}

void ImageFiles::read_part(int64_t id, const ChoosePart& choose, ImagePart& part) const {
  const std::filesystem::path file = files_.path(id);
  const std::string warning = decode(file, choose, part);
  if (!warning.empty()) warned_->add(file.string(), warning);
}

std::string ImageFiles::read_quietly(int64_t id, Image& image) const {
  ImagePart part;
  std::swap(part.pixels, image);
  std::string warning = decode(
      files_.path(id),
      [](int64_t height, int64_t width) {
        return Box{0, 0, height, width};
      },
      part);
  std::swap(part.pixels, image);
  return warning;
}

// Returns the decoder's first warning, or an empty text.
std::string ImageFiles::decode(const std::filesystem::path& file, const ChoosePart& choose, ImagePart& part) const {
  thread_local std::vector<uint8_t> memory;
  const std::span<const uint8_t> bytes = read_file_bytes(file, memory);
  try {
    const DecodeOptions options{options_.channels(), options_.apply_orientation};
    return decode_image(bytes, options, choose, part);
  } catch (const std::runtime_error& error) {
    throw DataError(fmt::format("'{}': {}", file.string(), error.what()));
  } catch (const std::bad_alloc&) {
    throw DataError(fmt::format("'{}': there is not enough memory to decode it", file.string()));
  }
}

std::filesystem::path file_of(const ImageSource& images, int64_t id) {
  const auto* files = dynamic_cast<const ImageFiles*>(&images);
  return files ? files->files().path(id) : std::filesystem::path();
}

namespace {

// Whether the first bytes of a file are looked at although its name is an image's: where few are in the split. Training
// meets its own images soon, and those of other splits only after an epoch, or after all of them; the small files of
// training may be what large-file storage and web servers leave in place of images.
class LooksInside {
 public:
  explicit LooksInside(const FileTable& files, const Split& split) : files_(files) {
    constexpr int64_t kMost = 5000;
    const auto small = std::ranges::count_if(split.ids, [this](int64_t id) { return is_small(id); });
    all_ = split.name != "train" && split.size() <= kMost;
    small_ = small <= kMost;
  }

  bool operator()(int64_t id) const { return all_ || (small_ && is_small(id)); }

 private:
  bool is_small(int64_t id) const {
    constexpr int64_t kSmall = 1024;  // bytes
    return files_.file_size(id) <= kSmall;
  }

  const FileTable& files_;
  bool all_, small_;
};

// Why a file is certain to be unreadable, or an empty text.
std::string certain_fault(const FileTable& files, int64_t id, const LooksInside& looks_inside) {
  if (files.file_size(id) == 0) return "empty";
  const std::string_view name = files.name(id);
  const bool is_other_picture = is_picture(name) && !is_image(name);
  if (!is_other_picture && !looks_inside(id)) return {};
  throw_if_interrupted();
  std::vector<char> start(64);
  std::ifstream stream(files.path(id), std::ios::binary);
  stream.read(start.data(), std::ssize(start));
  if (stream.gcount() == 0) return {};  // reading says why
  const auto* bytes = reinterpret_cast<const uint8_t*>(start.data());
  const ImageHeader header = parse_image_header({bytes, static_cast<size_t>(stream.gcount())});
  if (header.format == ImageFormat::kUnknown) return "no JPEG, PNG, BMP, WebP or TIFF";
  const bool has_early_size = header.format == ImageFormat::kPng || header.format == ImageFormat::kBmp;
  if (!has_early_size) return "";
  if (header.height == 0) return fmt::format("a {} without a size", name_of(header.format));
  return header.height > kMostPixels / header.width ? "more pixels than are decoded" : "";
}

}  // namespace

void refuse_unreadable(std::span<const Split* const> splits, bool may_skip) {
  constexpr int64_t kShown = 5;  // of each split
  int64_t all = 0;
  std::string text;
  for (const Split* split : splits) {
    const auto* images = dynamic_cast<const ImageFiles*>(split->images.get());
    if (!images) continue;
    const LooksInside looks_inside(images->files(), *split);
    int64_t count = 0;
    std::string shown;
    for (const int64_t id : split->ids) {
      const std::string fault = certain_fault(images->files(), id, looks_inside);
      if (fault.empty() && may_skip) break;
      if (fault.empty() || ++count > kShown) continue;
      shown += fmt::format("{}'{}' ({})", count == 1 ? "" : ", ", images->files().path(id).string(), fault);
    }
    if (may_skip && count < split->size()) continue;
    if (count > kShown) shown += fmt::format(" and {} more", count - kShown);
    if (count > 0) text += fmt::format("\n  {}: {}: {}", split->name, count, shown);
    all += count;
  }
  if (all == 0) return;
  const std::string what = may_skip ? "a split has no image that can be read"
                                    : fmt::format("{} image file{} cannot be read", all, all == 1 ? "" : "s");
  throw DataError(
      fmt::format("{}:{}\nReplace or remove the files{}; `settrain data verify` lists all that cannot be read", what,
                  text, may_skip ? "" : fmt::format(", or {}", kSkipAdvice)));
}

std::string ImageFiles::digest() const {
  Sha256 sha;
  for (int64_t i = 0; i < size(); ++i) {
    const std::string_view name = files_.name(i);
    sha.add(fmt::format("{} {}\n", name.substr(name.rfind('/') + 1), files_.file_size(i)));
  }
  return sha.hex();
}

}  // namespace settrain
