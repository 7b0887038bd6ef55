#include "datasets/image_files.h"

#include <fmt/format.h>

#include <functional>
#include <mutex>
#include <new>
#include <span>
#include <stdexcept>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "datasets/decode_image.h"
#include "datasets/file_bytes.h"
#include "src/core/digest.h"
#include "src/core/error.h"
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
  return {key("grey", &Options::grey, false, "Decode to one grey channel instead of three colour channels."),
          key("apply_orientation", &Options::apply_orientation, false,
              "Turn and mirror JPEGs by their EXIF orientation. torchvision, with which published results were "
              "made, ignores it.")};
}

ImageFiles::ImageFiles(FileTable files, const ImageFileOptions& options)
    : files_(std::move(files)), options_(options), warned_(WarnedFiles::of_all_sources()) {
  prepare_decoding();
}

void ImageFiles::read(int64_t id, Image& image) const {
  ImagePart part;
  std::swap(part.pixels, image);
  read_part(
      id,
      [](int64_t height, int64_t width) {
        return Box{0, 0, height, width};
      },
      part);
  std::swap(part.pixels, image);
}

void ImageFiles::read_part(int64_t id, const ChoosePart& choose, ImagePart& part) const {
  const std::filesystem::path file = files_.path(id);
  thread_local std::vector<uint8_t> memory;
  const std::span<const uint8_t> bytes = read_file_bytes(file, memory);
  try {
    const DecodeOptions options{options_.channels(), options_.apply_orientation};
    const std::string warning = decode_image(bytes, options, choose, part);
    if (!warning.empty()) warned_->add(file.string(), warning);
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

std::string ImageFiles::digest() const {
  Sha256 sha;
  for (int64_t i = 0; i < size(); ++i) {
    const std::string_view name = files_.name(i);
    sha.add(fmt::format("{} {}\n", name.substr(name.rfind('/') + 1), files_.file_size(i)));
  }
  return sha.hex();
}

}  // namespace settrain
