#include "datasets/image_files.h"

#include <fmt/format.h>

#include <new>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "datasets/decode_image.h"
#include "datasets/file_bytes.h"
#include "src/core/digest.h"
#include "src/core/error.h"

namespace settrain {

config::Keys ImageFileOptions::keys() {
  using config::key;
  using Options = ImageFileOptions;
  return {key("grey", &Options::grey, false, "Decode to one grey channel instead of three colour channels."),
          key("apply_orientation", &Options::apply_orientation, false,
              "Turn and mirror JPEGs by their EXIF orientation. torchvision, with which published results were "
              "made, ignores it.")};
}

ImageFiles::ImageFiles(FileTable files, const ImageFileOptions& options) : files_(std::move(files)), options_(options) {
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
    decode_image(bytes, {options_.channels(), options_.apply_orientation}, choose, part);
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
