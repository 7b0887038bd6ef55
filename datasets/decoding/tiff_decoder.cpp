#include <fmt/format.h>
#include <tiffio.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "datasets/decoding/image_decoders.h"

namespace settrain {
namespace {

// The most memory for a block of pixels, a tile or what libtiff converts at a time: that of the whole image in 8 bytes
// a pixel, and 64 MiB for a small image in a larger tile.
int64_t most_block_bytes(const ImageHeader& header) {
  return std::max(header.height * header.width * 8, int64_t{64} << 20);
}

// A file in memory, and what libtiff says of it. libtiff goes on after many errors; here every error counts.
struct TiffFile {
  std::span<const uint8_t> bytes;
  size_t at = 0;
  char error[256] = "", warning[256] = "";

  static tmsize_t read(thandle_t handle, void* out, tmsize_t size) {
    auto& file = *static_cast<TiffFile*>(handle);
    if (size <= 0 || file.at >= file.bytes.size()) return 0;
    const size_t count = std::min(static_cast<size_t>(size), file.bytes.size() - file.at);
    std::memcpy(out, file.bytes.data() + file.at, count);
    file.at += count;
    return static_cast<tmsize_t>(count);
  }
  static tmsize_t write(thandle_t, void*, tmsize_t) { return 0; }
  static toff_t seek(thandle_t handle, toff_t offset, int whence) {
    auto& file = *static_cast<TiffFile*>(handle);
    file.at = offset + (whence == SEEK_CUR ? file.at : whence == SEEK_END ? file.bytes.size() : 0);
    return file.at;
  }
  static int close(thandle_t) { return 0; }
  static toff_t size(thandle_t handle) { return static_cast<TiffFile*>(handle)->bytes.size(); }
  static int map(thandle_t handle, void** start, toff_t* size) {
    auto& file = *static_cast<TiffFile*>(handle);
    *start = const_cast<uint8_t*>(file.bytes.data());
    *size = file.bytes.size();
    return 1;
  }
  static void unmap(thandle_t, void*, toff_t) {}

  static int note_error(TIFF*, void* handle, const char*, const char* format, va_list arguments) {
    auto& file = *static_cast<TiffFile*>(handle);
    if (*file.error == '\0') std::vsnprintf(file.error, sizeof file.error, format, arguments);
    return 1;  // it goes to no other handler
  }

  static int note_warning(TIFF* tiff, void* handle, const char* module, const char* format, va_list arguments) {
    auto& file = *static_cast<TiffFile*>(handle);
    const std::string_view text = format;
    // A value of the directory that lies behind the file's end: the file is cut short, though its pixels may be there.
    if (text.starts_with("IO error during reading")) return note_error(tiff, handle, module, format, arguments);
    if (text.starts_with("Unknown field with tag")) return 1;  // every program has its own, and they change no pixel
    if (*file.warning == '\0') std::vsnprintf(file.warning, sizeof file.warning, format, arguments);
    return 1;
  }
};

class TiffReader {
 public:
  TiffReader(std::span<const uint8_t> bytes, int64_t most_block_bytes) : file_{.bytes = bytes} {
    const std::unique_ptr<TIFFOpenOptions, void (*)(TIFFOpenOptions*)> options(TIFFOpenOptionsAlloc(),
                                                                               TIFFOpenOptionsFree);
    if (!options) throw std::bad_alloc();
    TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), most_block_bytes);
    TIFFOpenOptionsSetErrorHandlerExtR(options.get(), &TiffFile::note_error, &file_);
    TIFFOpenOptionsSetWarningHandlerExtR(options.get(), &TiffFile::note_warning, &file_);
    tiff_.reset(TIFFClientOpenExt("image", "r", &file_, &TiffFile::read, &TiffFile::write, &TiffFile::seek,
                                  &TiffFile::close, &TiffFile::size, &TiffFile::map, &TiffFile::unmap, options.get()));
    check(tiff_ != nullptr);
    // libtiff does without the offset at the directory's end, which may be the last bytes of a file.
    const bool big_endian = bytes[0] == 'M', is_big_tiff = bytes[big_endian ? 3 : 2] == 43;
    const size_t count_size = is_big_tiff ? 8 : 2, offset_size = is_big_tiff ? 8 : 4;
    const uint64_t directory = TIFFCurrentDirOffset(get());
    check(directory <= bytes.size() && count_size <= bytes.size() - directory);
    uint64_t fields = 0;
    for (size_t i = 0; i < count_size; ++i) {
      fields = fields << 8 | bytes[directory + (big_endian ? i : count_size - 1 - i)];
    }
    // Each field has a tag, a type, a count and a value or offset. libtiff has read all of them.
    const uint64_t field_size = 4 + 2 * offset_size, left = bytes.size() - directory - count_size;
    if (fields > left / field_size || left - fields * field_size < offset_size) {
      throw std::runtime_error("the TIFF is cut short");
    }
  }

  TIFF* get() { return tiff_.get(); }
  const char* warning() const { return file_.warning; }

  // Throws where `ok` is false, or libtiff has reported an error.
  void check(bool ok) const {
    if (ok && *file_.error == '\0') return;
    throw std::runtime_error(*file_.error == '\0' ? "the TIFF is damaged" : fmt::format("libtiff: {}", file_.error));
  }

  // The bytes of a strip or tile in the file.
  std::span<const uint8_t> stored(uint32_t number) {
    const uint64_t at = TIFFGetStrileOffset(get(), number), size = TIFFGetStrileByteCount(get(), number);
    if (at > file_.bytes.size()) return {};
    return file_.bytes.subspan(at, std::min<uint64_t>(size, file_.bytes.size() - at));
  }

  // The value of a field, or libtiff's default for it, or `other`.
  template <class Value>
  Value field(uint32_t tag, Value other) {
    Value value{};
    return TIFFGetFieldDefaulted(get(), tag, &value) ? value : other;
  }

 private:
  TiffFile file_;
  std::unique_ptr<TIFF, void (*)(TIFF*)> tiff_{nullptr, TIFFClose};
};

enum class Colours { kGrey, kPalette, kRgb, kCmyk, kYcc };

struct Layout {
  Colours colours = Colours::kGrey;
  int64_t width = 0, height = 0, samples = 1, bits = 8;
  bool separate = false;       // a plane for each sample
  bool inverted = false;       // grey: 0 is white
  bool premultiplied = false;  // colours are multiplied by the alpha that follows them
  std::array<std::array<uint8_t, 3>, 256> palette{};
};

bool is_plain_ycc(TiffReader& tiff, int64_t bits, bool separate) {
  uint16_t across = 0, down = 0;
  TIFFGetFieldDefaulted(tiff.get(), TIFFTAG_YCBCRSUBSAMPLING, &across, &down);
  return tiff.field<uint16_t>(TIFFTAG_COMPRESSION, COMPRESSION_NONE) == COMPRESSION_NONE && bits == 8 && !separate &&
         across == 1 && down == 1;
}

void read_palette(TiffReader& tiff, Layout& layout) {
  uint16_t *red = nullptr, *green = nullptr, *blue = nullptr;
  tiff.check(TIFFGetField(tiff.get(), TIFFTAG_COLORMAP, &red, &green, &blue) == 1);
  const auto byte = [](uint16_t value) { return static_cast<uint8_t>(value >> 8); };
  for (size_t i = 0; i < size_t{1} << layout.bits; ++i)
    layout.palette[i] = {byte(red[i]), byte(green[i]), byte(blue[i])};
}

// How the samples lie; none where libtiff has to convert them: subsampled colours and the old kind of JPEG.
std::optional<Layout> layout_of(TiffReader& tiff) {
  Layout layout;
  layout.width = tiff.field<uint32_t>(TIFFTAG_IMAGEWIDTH, 0);
  layout.height = tiff.field<uint32_t>(TIFFTAG_IMAGELENGTH, 0);
  layout.samples = tiff.field<uint16_t>(TIFFTAG_SAMPLESPERPIXEL, 1);
  layout.bits = tiff.field<uint16_t>(TIFFTAG_BITSPERSAMPLE, 1);
  layout.separate = tiff.field<uint16_t>(TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG) == PLANARCONFIG_SEPARATE;
  const auto compression = tiff.field<uint16_t>(TIFFTAG_COMPRESSION, COMPRESSION_NONE);
  const auto format = tiff.field<uint16_t>(TIFFTAG_SAMPLEFORMAT, SAMPLEFORMAT_UINT);
  uint16_t photometric = layout.samples >= 3 ? PHOTOMETRIC_RGB : PHOTOMETRIC_MINISWHITE;  // where no field says it
  TIFFGetField(tiff.get(), TIFFTAG_PHOTOMETRIC, &photometric);
  int64_t colours = 1;
  switch (photometric) {
    case PHOTOMETRIC_MINISWHITE:
    case PHOTOMETRIC_MINISBLACK:
      layout.inverted = photometric == PHOTOMETRIC_MINISWHITE;
      break;
    case PHOTOMETRIC_PALETTE:
      layout.colours = Colours::kPalette;
      break;
    case PHOTOMETRIC_RGB:
      layout.colours = Colours::kRgb;
      colours = 3;
      break;
    case PHOTOMETRIC_SEPARATED:
      layout.colours = Colours::kCmyk;
      colours = 4;
      break;
    case PHOTOMETRIC_YCBCR:
      colours = 3;
      if (compression == COMPRESSION_JPEG && !layout.separate) {
        TIFFSetField(tiff.get(), TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
        layout.colours = Colours::kRgb;
      } else if (is_plain_ycc(tiff, layout.bits, layout.separate)) {
        layout.colours = Colours::kYcc;
      } else {
        return std::nullopt;
      }
      break;
    default:  // CIELab, ICCLab, LogLuv and others, of which libtiff would convert some to other pixels than Pillow
      throw std::runtime_error(fmt::format("its colours (photometric interpretation {}) are not read", photometric));
  }
  if (compression == COMPRESSION_OJPEG) return std::nullopt;
  const int64_t most_bits = layout.colours == Colours::kPalette ? 8 : 16;
  if ((format != SAMPLEFORMAT_UINT && format != SAMPLEFORMAT_VOID) || layout.bits < 1 || layout.bits > most_bits) {
    throw std::runtime_error(fmt::format("samples of {} bits{} are not read", layout.bits,
                                         format == SAMPLEFORMAT_IEEEFP ? ", floating point,"
                                         : format == SAMPLEFORMAT_INT  ? ", signed,"
                                                                       : ""));
  }
  if (layout.samples < colours) {
    throw std::runtime_error(fmt::format("has {} samples a pixel for {} colours", layout.samples, colours));
  }
  if (layout.colours == Colours::kPalette) read_palette(tiff, layout);
  uint16_t extra = 0;
  const uint16_t* kinds = nullptr;
  TIFFGetFieldDefaulted(tiff.get(), TIFFTAG_EXTRASAMPLES, &extra, &kinds);
  // Pillow leaves the colours of uncompressed separate planes as they are.
  layout.premultiplied = extra > 0 && kinds[0] == EXTRASAMPLE_ASSOCALPHA && layout.samples > colours &&
                         (layout.colours == Colours::kGrey || layout.colours == Colours::kRgb) &&
                         (!layout.separate || compression != COMPRESSION_NONE);
  return layout;
}

// Samples of any number of bits become bytes: numbers of a palette as they are, others scaled to 0 to 255; of more than
// 8 bits the highest 8. Rows start at whole bytes.
void to_bytes(const uint8_t* in, int64_t count, const Layout& layout, uint8_t* out) {
  const int64_t bits = layout.bits;
  if (bits == 8) {
    std::copy_n(in, count, out);
    return;
  }
  if (bits == 16) {  // in this machine's byte order
    for (int64_t i = 0; i < count; ++i, in += 2) {
      uint16_t value = 0;
      std::memcpy(&value, in, 2);
      out[i] = static_cast<uint8_t>(value >> 8);
    }
    return;
  }
  const uint32_t most = (1u << bits) - 1;
  uint32_t held = 0;
  int64_t held_bits = 0;
  for (int64_t i = 0; i < count; ++i) {
    for (; held_bits < bits; held_bits += 8) held = held << 8 | *in++;
    held_bits -= bits;
    const uint32_t value = held >> held_bits & most;
    if (layout.colours == Colours::kPalette) {
      out[i] = static_cast<uint8_t>(value);
    } else {
      out[i] = static_cast<uint8_t>(bits > 8 ? value >> (bits - 8) : value * 255 / most);
    }
  }
}

// Pillow's tables of the parts of red, green and blue that a chroma sample adds, times 64.
struct ChromaTables {
  std::array<int, 256> red_cr{}, green_cb{}, green_cr{}, blue_cb{};

  ChromaTables() {
    for (int i = 0; i < 256; ++i) {
      const auto at = static_cast<size_t>(i);
      const auto scaled = [i](double factor) { return static_cast<int>(factor * 64 * (i - 128) + 0.5); };
      red_cr[at] = scaled(1.402);
      green_cb[at] = scaled(-0.34414);
      green_cr[at] = scaled(-0.71414);
      blue_cb[at] = scaled(1.772);
    }
  }
};

int clip(int value) {
  return std::clamp(value, 0, 255);
}

// A row of samples, one array for each of the pixel's samples, `step` apart.
struct SampleRow {
  std::array<const uint8_t*, 4> of{};
  int64_t step = 1;
};

// Converts `count` pixels.
void store_row(const SampleRow& row, int64_t count, const Layout& layout, int64_t channels, uint8_t* out) {
  static const ChromaTables chroma;
  const auto each = [&](auto colour_at) {
    for (int64_t x = 0; x < count; ++x) {
      const std::array<int, 3> colour = colour_at(x * row.step);
      out = store(out, channels, colour[0], colour[1], colour[2]);
    }
  };
  using Colour = std::array<int, 3>;
  const auto [first, second, third, fourth] = row.of;
  switch (layout.colours) {
    case Colours::kGrey: {
      const int flip = layout.inverted ? 255 : 0;
      each([&, first = first, second = second](int64_t i) {
        int grey = first[i] ^ flip;
        if (layout.premultiplied && second[i] != 0) grey = clip(grey * 255 / second[i]);
        return Colour{grey, grey, grey};
      });
      return;
    }
    case Colours::kPalette:
      each([&, first = first](int64_t i) {
        const auto& colour = layout.palette[first[i]];
        return Colour{colour[0], colour[1], colour[2]};
      });
      return;
    case Colours::kRgb:
      if (layout.premultiplied) {
        each([&, first = first, second = second, third = third, fourth = fourth](int64_t i) {
          const int alpha = fourth[i];
          if (alpha == 0) return Colour{0, 0, 0};
          return Colour{clip(first[i] * 255 / alpha), clip(second[i] * 255 / alpha), clip(third[i] * 255 / alpha)};
        });
        return;
      }
      each([first = first, second = second, third = third](int64_t i) {
        return Colour{first[i], second[i], third[i]};
      });
      return;
    case Colours::kCmyk:
      each([first = first, second = second, third = third, fourth = fourth](int64_t i) {
        const int light = 255 - fourth[i];
        return Colour{multiply(255 - first[i], light), multiply(255 - second[i], light),
                      multiply(255 - third[i], light)};
      });
      return;
    case Colours::kYcc:
      each([&, first = first, second = second, third = third](int64_t i) {
        const int y = first[i], cb = second[i], cr = third[i];
        const auto of = [](const std::array<int, 256>& table, int at) { return table[static_cast<size_t>(at)]; };
        return Colour{clip(y + (of(chroma.red_cr, cr) >> 6)),
                      clip(y + ((of(chroma.green_cb, cb) + of(chroma.green_cr, cr)) >> 6)),
                      clip(y + (of(chroma.blue_cb, cb) >> 6))};
      });
      return;
  }
}

// Whether the data of a strip or tile are a sound zlib stream as far as they go, checksum included. libtiff stops at
// the last byte that it needs, before the checksum. At most `left` bytes are unpacked, of which it takes off what was:
// a small file may have streams without end.
bool is_sound_deflate(std::span<const uint8_t> data, int64_t& left) {
  z_stream stream{};
  if (inflateInit(&stream) != Z_OK) throw std::bad_alloc();
  const std::unique_ptr<z_stream, int (*)(z_stream*)> release(&stream, inflateEnd);
  stream.next_in = const_cast<uint8_t*>(data.data());
  stream.avail_in = static_cast<uInt>(data.size());
  std::array<uint8_t, 1 << 15> out;
  int state = Z_OK;
  while (state == Z_OK && left > 0) {
    stream.next_out = out.data();
    stream.avail_out = out.size();
    state = inflate(&stream, Z_NO_FLUSH);
    left -= std::ssize(out) - stream.avail_out;
  }
  return state == Z_STREAM_END || state == Z_BUF_ERROR;  // no end: a writer that leaves out the checksum
}

// Whether the data end with the checksum of these bytes: the same in a fifth of the time, where nothing follows them.
bool ends_with_checksum(std::span<const uint8_t> data, const uint8_t* unpacked, int64_t size) {
  if (data.size() < 4) return false;
  const auto sum = static_cast<uint32_t>(adler32_z(1, unpacked, static_cast<size_t>(size)));
  const auto end = data.last(4);
  return sum == (uint32_t{end[0]} << 24 | uint32_t{end[1]} << 16 | uint32_t{end[2]} << 8 | end[3]);
}

// Reads strip by strip, or tile by tile.
void read_blocks(TiffReader& tiff, const Layout& layout, int64_t most_bytes, Image& image) {
  TIFF* const handle = tiff.get();
  const bool tiled = TIFFIsTiled(handle) != 0;
  const int64_t across = tiled ? tiff.field<uint32_t>(TIFFTAG_TILEWIDTH, 0) : layout.width;
  const int64_t down = tiled ? tiff.field<uint32_t>(TIFFTAG_TILELENGTH, 0)
                             : std::min<int64_t>(tiff.field<uint32_t>(TIFFTAG_ROWSPERSTRIP, 0), layout.height);
  const int64_t planes = layout.separate ? layout.samples : 1, in_plane = layout.separate ? 1 : layout.samples;
  const auto compression = tiff.field<uint16_t>(TIFFTAG_COMPRESSION, COMPRESSION_NONE);
  const bool is_deflate = (compression == COMPRESSION_ADOBE_DEFLATE || compression == COMPRESSION_DEFLATE) &&
                          tiff.field<uint16_t>(TIFFTAG_FILLORDER, FILLORDER_MSB2LSB) == FILLORDER_MSB2LSB;
  // Whether libtiff has changed nothing since it unpacked them, neither by a predictor nor the order of bytes.
  const bool is_as_packed = is_deflate && layout.bits <= 8 && tiff.field<uint16_t>(TIFFTAG_PREDICTOR, 1) == 1;
  const int64_t row_bytes = tiled ? TIFFTileRowSize(handle) : TIFFScanlineSize(handle);
  tiff.check(across > 0 && down > 0 && row_bytes > 0);
  const int64_t row_values = std::min(across, layout.width);
  if (row_bytes > most_bytes / planes / down || row_values > most_bytes / layout.samples) {
    throw std::runtime_error(fmt::format("its {}s are too large", tiled ? "tile" : "strip"));
  }
  const int64_t block_bytes = down * row_bytes;
  tiff.check(row_bytes >= (across * in_plane * layout.bits + 7) / 8 && (!tiled || TIFFTileSize(handle) == block_bytes));

  // Sound streams hold their block and no more.
  int64_t left_to_unpack = (int64_t{16} << 20) + 2 * block_bytes * planes * ((layout.height + down - 1) / down) *
                                                     ((layout.width + across - 1) / across);
  std::vector<uint8_t> blocks(static_cast<size_t>(block_bytes * planes));
  std::vector<uint8_t> samples(static_cast<size_t>(row_values * layout.samples));
  for (int64_t top = 0; top < layout.height; top += down) {
    const int64_t rows = std::min(down, layout.height - top);
    for (int64_t left = 0; left < layout.width; left += across) {
      for (int64_t plane = 0; plane < planes; ++plane) {
        const auto x = static_cast<uint32_t>(left), y = static_cast<uint32_t>(top);
        const auto sample = static_cast<uint16_t>(plane);
        const uint32_t number = tiled ? TIFFComputeTile(handle, x, y, 0, sample) : TIFFComputeStrip(handle, y, sample);
        uint8_t* const block = blocks.data() + plane * block_bytes;
        const int64_t size = tiled ? block_bytes : rows * row_bytes;
        const int64_t got = tiled ? TIFFReadEncodedTile(handle, number, block, size)
                                  : TIFFReadEncodedStrip(handle, number, block, size);
        tiff.check(got == size);
        if (!is_deflate) continue;
        const std::span<const uint8_t> data = tiff.stored(number);
        if (is_as_packed && ends_with_checksum(data, block, size)) continue;
        if (!is_sound_deflate(data, left_to_unpack)) throw std::runtime_error("its Deflate data are damaged");
      }
      const int64_t columns = std::min(across, layout.width - left);
      for (int64_t y = 0; y < rows; ++y) {
        for (int64_t plane = 0; plane < planes; ++plane) {
          to_bytes(blocks.data() + plane * block_bytes + y * row_bytes, columns * in_plane, layout,
                   samples.data() + plane * row_values);
        }
        SampleRow row{.step = in_plane};
        for (int64_t i = 0; i < std::min<int64_t>(4, layout.samples); ++i) {
          row.of[static_cast<size_t>(i)] = samples.data() + (layout.separate ? i * row_values : i);
        }
        store_row(row, columns, layout, image.channels,
                  image.pixels.data() + ((top + y) * layout.width + left) * image.channels);
      }
    }
  }
}

// By libtiff's own conversion to RGBA.
void read_converted(TiffReader& tiff, Image& image) {
  char reason[1024] = "";
  TIFFRGBAImage converter;
  if (!TIFFRGBAImageOK(tiff.get(), reason) || !TIFFRGBAImageBegin(&converter, tiff.get(), 1, reason)) {
    throw std::runtime_error(fmt::format("libtiff: {}", reason));
  }
  const std::unique_ptr<TIFFRGBAImage, void (*)(TIFFRGBAImage*)> release(&converter, TIFFRGBAImageEnd);
  converter.orientation = converter.req_orientation = ORIENTATION_TOPLEFT;
  std::vector<uint32_t> raster(static_cast<size_t>(image.height * image.width));
  const auto width = static_cast<uint32_t>(image.width), height = static_cast<uint32_t>(image.height);
  tiff.check(TIFFRGBAImageGet(&converter, raster.data(), width, height) != 0);
  uint8_t* out = image.pixels.data();
  for (const uint32_t pixel : raster) {
    out = store(out, image.channels, TIFFGetR(pixel), TIFFGetG(pixel), TIFFGetB(pixel));
  }
}

}  // namespace

std::string decode_tiff(std::span<const uint8_t> bytes, const ImageHeader& header, int64_t channels, Image& image,
                        int& orientation) {
  const int64_t most_bytes = most_block_bytes(header);
  TiffReader tiff(bytes, most_bytes);
  const auto height = tiff.field<uint32_t>(TIFFTAG_IMAGELENGTH, 0), width = tiff.field<uint32_t>(TIFFTAG_IMAGEWIDTH, 0);
  set_size(image, header, height, width, channels);
  const std::optional<Layout> layout = layout_of(tiff);
  image.pixels.resize(static_cast<size_t>(image.height * image.width * channels));
  if (layout) {
    read_blocks(tiff, *layout, most_bytes, image);
  } else {
    read_converted(tiff, image);
  }
  tiff.check(true);
  orientation = tiff.field<uint16_t>(TIFFTAG_ORIENTATION, ORIENTATION_TOPLEFT);
  if (orientation < 1 || orientation > 8) orientation = 1;
  return *tiff.warning() == '\0' ? std::string() : fmt::format("libtiff: {}", tiff.warning());
}

// libtiff has its version only in a text of several lines: "LIBTIFF, Version 4.5.0".
std::string tiff_library_version() {
  const std::string_view text = TIFFGetVersion();
  const size_t first = std::min(text.find_first_of("0123456789"), text.size());
  return std::string(text.substr(first, text.find_first_not_of("0123456789.", first) - first));
}

}  // namespace settrain
