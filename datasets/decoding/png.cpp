#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "datasets/decoding/decode_image.h"
#include "datasets/decoding/image_decoders.h"

namespace settrain {
namespace {

// libpng reports an error by a function that must not return. It leaves by longjmp, since no exception may pass through
// C code.
class PngReader {
 public:
  explicit PngReader(std::span<const uint8_t> bytes) : left_(bytes) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, &PngReader::fail, &PngReader::warn);
    if (!png_) throw std::runtime_error("libpng cannot be started");
    info_ = png_create_info_struct(png_);
    if (!info_) {
      png_destroy_read_struct(&png_, nullptr, nullptr);
      throw std::runtime_error("libpng cannot be started");
    }
    png_set_read_fn(png_, this, &PngReader::read);
  }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }

  png_structp png() { return png_; }
  png_infop info() { return info_; }
  const char* warning() const { return warning_; }

  // Runs calls of libpng. They must hold no object with a destructor, which longjmp would skip.
  template <class Calls>
  void guarded(const Calls& calls) {
    if (setjmp(back_)) throw std::runtime_error(error_);
    calls();
  }

 private:
  [[noreturn]] static void fail(png_structp png, png_const_charp message) {
    auto& reader = *static_cast<PngReader*>(png_get_error_ptr(png));
    std::snprintf(reader.error_, sizeof reader.error_, "libpng: %s", message);
    std::longjmp(reader.back_, 1);
  }

  static void warn(png_structp png, png_const_charp message) {
    auto& reader = *static_cast<PngReader*>(png_get_error_ptr(png));
    if (*reader.warning_ == '\0') std::snprintf(reader.warning_, sizeof reader.warning_, "libpng: %s", message);
  }

  static void read(png_structp png, png_bytep out, size_t size) {
    auto& reader = *static_cast<PngReader*>(png_get_io_ptr(png));
    if (size > reader.left_.size()) png_error(png, "the PNG is cut short");
    std::copy_n(reader.left_.begin(), size, out);
    reader.left_ = reader.left_.subspan(size);
  }

  std::span<const uint8_t> left_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::jmp_buf back_{};
  char error_[256] = "", warning_[256] = "";
};

}  // namespace

std::string decode_png(std::span<const uint8_t> bytes, const ImageHeader& header, int64_t channels, Image& image) {
  PngReader reader(bytes);
  const png_structp png = reader.png();
  const png_infop info = reader.info();
  reader.guarded([&] {
    png_set_user_limits(png, kMostPixels, kMostPixels);
    // Chunks that change no pixel here are not read: gamma, colour profiles, texts. A wrong checksum of any chunk is an
    // error, as in Pillow.
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
    png_set_crc_action(png, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
    png_read_info(png, info);
  });
  set_size(image, header, png_get_image_height(png, info), png_get_image_width(png, info), channels);
  const int type = png_get_color_type(png, info);
  const bool has_palette = type == PNG_COLOR_TYPE_PALETTE;
  const int64_t stored = type == PNG_COLOR_TYPE_RGB || type == PNG_COLOR_TYPE_RGB_ALPHA ? 3 : 1;

  // The stored samples lie at the end of the memory, so that what is made of them overwrites none that is still needed.
  const auto pixels = static_cast<size_t>(image.height * image.width);
  image.pixels.resize(pixels * static_cast<size_t>(std::max(stored, channels)));
  uint8_t* const samples = image.pixels.data() + (image.pixels.size() - pixels * static_cast<size_t>(stored));
  const auto stride = static_cast<size_t>(image.width * stored);
  reader.guarded([&] {
    if (has_palette) {
      png_set_packing(png);
    } else {
      png_set_expand_gray_1_2_4_to_8(png);
    }
    png_set_strip_16(png);
    png_set_strip_alpha(png);
    const int passes = png_set_interlace_handling(png);
    png_read_update_info(png, info);
    if (png_get_rowbytes(png, info) != stride) png_error(png, "unexpected size of a row");
    for (int pass = 0; pass < passes; ++pass) {
      for (int64_t y = 0; y < image.height; ++y) png_read_row(png, samples + static_cast<size_t>(y) * stride, nullptr);
    }
    png_read_end(png, nullptr);
  });

  uint8_t* out = image.pixels.data();
  if (has_palette) {
    png_color colours[256] = {};  // an index beyond the palette is black
    png_colorp palette = nullptr;
    int size = 0;
    png_get_PLTE(png, info, &palette, &size);
    std::copy_n(palette, std::clamp(size, 0, 256), colours);
    for (size_t i = 0; i < pixels; ++i) {
      const png_color& colour = colours[samples[i]];
      out = store(out, channels, colour.red, colour.green, colour.blue);
    }
  } else if (stored < channels) {
    for (size_t i = 0; i < pixels; ++i) out = std::fill_n(out, 3, samples[i]);
  } else if (stored > channels) {
    for (size_t i = 0; i < pixels; ++i, out++) *out = grey_of(samples[3 * i], samples[3 * i + 1], samples[3 * i + 2]);
  }
  image.pixels.resize(pixels * static_cast<size_t>(channels));
  return reader.warning();
}

std::vector<uint8_t> encode_png(const Image& image) {
  if (image.channels != 1 && image.channels != 3) throw std::invalid_argument("a picture has 1 or 3 channels");
  png_image header{};
  header.version = PNG_IMAGE_VERSION;
  header.width = static_cast<png_uint_32>(image.width);
  header.height = static_cast<png_uint_32>(image.height);
  header.format = image.channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
  std::vector<uint8_t> png(PNG_IMAGE_PNG_SIZE_MAX(header));
  png_alloc_size_t size = png.size();
  if (!png_image_write_to_memory(&header, png.data(), &size, 0, image.pixels.data(), 0, nullptr)) {
    throw std::runtime_error(std::string("libpng: ") + header.message);
  }
  png.resize(size);
  return png;
}

std::string png_library_version() {
  return png_get_libpng_ver(nullptr);
}

}  // namespace settrain
