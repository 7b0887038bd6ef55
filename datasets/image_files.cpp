#include "datasets/image_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <opencv2/core.hpp>
#include <span>
#include <stdexcept>
#include <utility>

#include "datasets/decode_image.h"
#include "src/core/descriptor.h"
#include "src/core/digest.h"
#include "src/core/error.h"

namespace settrain {

namespace {

// All bytes of a file, in memory that the thread keeps for the next one.
std::span<const uint8_t> read_bytes(const std::filesystem::path& file) {
  thread_local std::vector<uint8_t> bytes;
  const Descriptor descriptor(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!descriptor.is_open()) throw DataError(file_error("open", file, errno).what());
  struct stat status {};
  if (::fstat(descriptor.get(), &status) != 0) throw DataError(file_error("read", file, errno).what());
  const auto size = static_cast<size_t>(std::max<off_t>(0, status.st_size));
  if (bytes.size() < size) bytes.resize(size);
  size_t filled = 0;
  while (filled < size) {
    const ssize_t got = ::read(descriptor.get(), bytes.data() + filled, size - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw DataError(file_error("read", file, errno).what());
    if (got == 0) break;  // it has become shorter meanwhile
    filled += static_cast<size_t>(got);
  }
  return {bytes.data(), filled};
}

}  // namespace

config::Keys ImageFileOptions::keys() {
  using config::key;
  using Options = ImageFileOptions;
  return {
      key("grey", &Options::grey, false, "Decode to one grey channel instead of three of colour."),
      key("apply_orientation", &Options::apply_orientation, false,
          "Turn and mirror JPEGs as their EXIF orientation asks for. torchvision, which published results were made "
          "with, does not.")};
}

ImageFiles::ImageFiles(std::vector<std::filesystem::path> files, const ImageFileOptions& options)
    : files_(std::move(files)), options_(options) {
  // OpenCV's own threads would compete with those that compute; images are read by several threads at a time anyway.
  cv::setNumThreads(1);
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
  const std::filesystem::path& file = files_.at(static_cast<size_t>(id));
  const std::span<const uint8_t> bytes = read_bytes(file);
  try {
    decode_image(bytes, {options_.channels(), options_.apply_orientation}, choose, part);
  } catch (const std::runtime_error& error) {
    throw DataError(fmt::format(
        "'{}': {}. Replace or remove the file, or set data.on_bad_image: skip; `settrain data verify` lists all such files",
        file.string(), error.what()));
  }
}

std::string ImageFiles::digest() const {
  Sha256 sha;
  for (const std::filesystem::path& file : files_) {
    std::error_code ignored;
    sha.add(fmt::format("{} {}\n", file.filename().string(), std::filesystem::file_size(file, ignored)));
  }
  return sha.hex();
}

}  // namespace settrain
