// clang-format off
#include <cstdio>  // before jpeglib.h, which uses FILE and size_t
#include <jpeglib.h>
// clang-format on

#include <fmt/format.h>

#include <algorithm>
#include <csetjmp>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "datasets/decoding/baseline_jpeg.h"
#include "datasets/decoding/decode_image.h"
#include "datasets/decoding/image_decoders.h"

namespace settrain {
namespace {

// Pixels around a part that are decoded too. Where decoding begins or ends within a row, the filter that enlarges the
// colour planes treats that place as the image's edge: one colour sample, up to 4 pixels, comes out wrong.
constexpr int64_t kMargin = 4;

// The most scans of a progressive JPEG; encoders write about ten. Each costs a pass over all blocks, however few bytes
// it has: without a limit, a file of one megabyte could keep a core busy for minutes.
constexpr int kMostScans = 500;

// libjpeg reports errors by a function that must not return. It leaves by longjmp, since no exception may pass through
// C code.
struct Errors {
  jpeg_error_mgr manager{};
  std::jmp_buf back{};
  char message[JMSG_LENGTH_MAX] = "";
  char warning[JMSG_LENGTH_MAX] = "";

  static void leave(j_common_ptr jpeg) {
    auto* errors = reinterpret_cast<Errors*>(jpeg->err);  // `manager` is the first member
    jpeg->err->format_message(jpeg, errors->message);
    std::longjmp(errors->back, 1);
  }

  // libjpeg calls it for the first warning only. Damaged pixels are no error, as in Pillow.
  static void warn(j_common_ptr jpeg) {
    jpeg->err->format_message(jpeg, reinterpret_cast<Errors*>(jpeg->err)->warning);
  }
};

class Decompressor {
 public:
  Decompressor() {
    jpeg_.err = jpeg_std_error(&errors_.manager);
    errors_.manager.error_exit = &Errors::leave;
    errors_.manager.output_message = &Errors::warn;
    guarded([this] { jpeg_create_decompress(&jpeg_); });
    progress_.progress_monitor = &Decompressor::count_scans;
    jpeg_.progress = &progress_;
  }
  Decompressor(const Decompressor&) = delete;
  Decompressor& operator=(const Decompressor&) = delete;
  ~Decompressor() { jpeg_destroy_decompress(&jpeg_); }

  jpeg_decompress_struct& jpeg() { return jpeg_; }
  std::string warning() const { return errors_.warning; }

  // Runs calls of libjpeg. They must hold no object with a destructor, which longjmp would skip.
  template <class Calls>
  void guarded(const Calls& calls) {
    if (setjmp(errors_.back)) throw std::runtime_error(errors_.message);
    calls();
  }

 private:
  static void count_scans(j_common_ptr jpeg) {
    if (reinterpret_cast<j_decompress_ptr>(jpeg)->input_scan_number <= kMostScans) return;
    auto* errors = reinterpret_cast<Errors*>(jpeg->err);
    std::snprintf(errors->message, sizeof errors->message, "it has more than %d scans", kMostScans);
    std::longjmp(errors->back, 1);
  }

  jpeg_decompress_struct jpeg_{};
  jpeg_progress_mgr progress_{};
  Errors errors_;
};

// Converts `values` in place from CMYK [pixels, 4], 255 for no ink as every program writes it, to [pixels, channels].
void multiply_out(std::vector<uint8_t>& values, int64_t channels) {
  uint8_t* out = values.data();
  for (size_t i = 0; i < values.size(); i += 4) {
    const uint8_t key = values[i + 3];
    out = store(out, channels, multiply(values[i], key), multiply(values[i + 1], key), multiply(values[i + 2], key));
  }
  values.resize(static_cast<size_t>(out - values.data()));
}

// Whether libjpeg smooths the image across its blocks, which it does where a progressive file lacks scans.
bool is_smoothed(const jpeg_decompress_struct& jpeg) {
  if (!jpeg.progressive_mode) return false;
  // coef_bits: the number of missing bits of each coefficient, for every component; -1 means all.
  return std::any_of(jpeg.coef_bits, jpeg.coef_bits + jpeg.num_components, [](const int(&bits)[DCTSIZE2]) {
    return std::any_of(std::begin(bits), std::end(bits), [](int missing) { return missing != 0; });
  });
}

// Reads rows until `end` into `rows`.
void read_rows(jpeg_decompress_struct& jpeg, int64_t end, uint8_t* rows) {
  const size_t stride = size_t{jpeg.output_width} * static_cast<size_t>(jpeg.output_components);
  while (jpeg.output_scanline < end) {
    JSAMPROW next[4];
    const auto count = std::min<int64_t>(4, end - jpeg.output_scanline);
    for (int64_t i = 0; i < count; ++i) next[i] = rows + static_cast<size_t>(i) * stride;
    rows += jpeg_read_scanlines(&jpeg, next, static_cast<JDIMENSION>(count)) * stride;
  }
}

}  // namespace

std::string decode_jpeg(std::span<const uint8_t> bytes, int64_t channels, const ChoosePart& choose, ImagePart& part) {
  Decompressor decompressor;
  jpeg_decompress_struct& jpeg = decompressor.jpeg();
  decompressor.guarded([&] {
    jpeg_mem_src(&jpeg, bytes.data(), bytes.size());
    jpeg_read_header(&jpeg, TRUE);
  });
  const bool cmyk = jpeg.jpeg_color_space == JCS_CMYK || jpeg.jpeg_color_space == JCS_YCCK;
  jpeg.out_color_space = cmyk ? JCS_CMYK : channels == 1 ? JCS_GRAYSCALE : JCS_RGB;

  const int64_t height = jpeg.image_height, width = jpeg.image_width;
  const Box box = choose(height, width);
  const auto warning = [&] {
    const std::string text = decompressor.warning();
    return text.empty() ? text : "libjpeg: " + text;
  };
  if (jpeg::decode_baseline(jpeg, box, channels, part.pixels)) {
    part.top = box.top;
    part.left = box.left;
    return warning();
  }
  part.top = std::max<int64_t>(0, box.top - kMargin);
  part.left = std::max<int64_t>(0, box.left - kMargin);
  auto left = static_cast<JDIMENSION>(part.left);
  auto columns = static_cast<JDIMENSION>(std::min(width, box.left + box.width + kMargin) - part.left);
  decompressor.guarded([&] {
    jpeg_start_decompress(&jpeg);
    if (is_smoothed(jpeg)) {
      left = 0;  // smoothing reaches over two blocks, further than the margin
    } else if (columns < jpeg.output_width) {
      jpeg_crop_scanline(&jpeg, &left, &columns);
    }
  });
  part.left = left;  // blocks are decoded whole
  Image& image = part.pixels;
  image.height = box.top + box.height - part.top;
  image.width = jpeg.output_width;
  image.channels = channels;
  image.pixels.resize(static_cast<size_t>(image.height * image.width * jpeg.output_components));
  decompressor.guarded([&] {
    if (part.top > 0) jpeg_skip_scanlines(&jpeg, static_cast<JDIMENSION>(part.top));
    read_rows(jpeg, part.top + image.height, image.pixels.data());
  });
  if (cmyk) multiply_out(image.pixels, channels);
  return warning();
}

std::string jpeg_library_version() {
  constexpr int kVersion = LIBJPEG_TURBO_VERSION_NUMBER;
  return fmt::format("{}.{}.{}", kVersion / 1000000, kVersion / 1000 % 1000, kVersion % 1000);
}

}  // namespace settrain
