#include "src/loader/image_operation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numbers>
#include <stdexcept>

#include "src/loader/kernels/pixel_kernels.h"

namespace settrain {
namespace {

struct NamedOperation {
  OperationKind kind;
  const char* name;
  bool has_amount;
};

constexpr NamedOperation kOperations[] = {
    {OperationKind::kIdentity, "identity", false},
    {OperationKind::kShearX, "shear x", true},
    {OperationKind::kShearY, "shear y", true},
    {OperationKind::kTranslateX, "translate x", true},
    {OperationKind::kTranslateY, "translate y", true},
    {OperationKind::kRotate, "rotate", true},
    {OperationKind::kBrightness, "brightness", true},
    {OperationKind::kColour, "colour", true},
    {OperationKind::kContrast, "contrast", true},
    {OperationKind::kSharpness, "sharpness", true},
    {OperationKind::kPosterize, "posterize", true},
    {OperationKind::kSolarize, "solarize", true},
    {OperationKind::kAutocontrast, "autocontrast", false},
    {OperationKind::kEqualize, "equalize", false},
    {OperationKind::kInvert, "invert", false},
    {OperationKind::kHue, "hue", true},
};

// One table of 256 numbers for each channel.
using Tables = std::vector<uint8_t>;

int64_t pixels_of(const Image& image) {
  return image.height * image.width;
}

// A place of the result in the source: x = m[0] x' + m[1] y' + m[2], y = m[3] x' + m[4] y' + m[5].
using Matrix = std::array<double, 6>;

// Pillow's numbers of 2^-16 for the middle of the pixels.
FixedAffine fixed(const Matrix& m) {
  const auto number = [](double v) { return static_cast<int64_t>(std::floor(v * 65536.0 + 0.5)); };
  return {number(m[2] + m[0] * 0.5 + m[1] * 0.5), number(m[0]), number(m[1]),
          number(m[5] + m[3] * 0.5 + m[4] * 0.5), number(m[3]), number(m[4])};
}

constexpr double kDegree = std::numbers::pi / 180;

// The slope of torchvision, which goes through degrees.
double sheared(double slope) {
  return std::atan(slope) * (180.0 / std::numbers::pi) * kDegree;
}

Matrix shear_of(const ImageOperation& operation) {
  const double angle = sheared(operation.amount);
  if (operation.kind == OperationKind::kShearX) return {1, std::tan(angle), 0, 0, 1, 0};
  return {1, 0, 0, std::sin(angle) / std::cos(angle), 1, 0};
}

// Rounded to 15 decimals, halves of the decimal number to the even digit, as Python's round().
double rounded_to_15(double value) {
  std::array<char, 64> text{};
  const auto end = std::to_chars(text.begin(), text.end(), value, std::chars_format::fixed, 15).ptr;
  std::from_chars(text.begin(), end, value);
  return value;
}

Matrix rotation(double degrees, int64_t height, int64_t width) {
  const double angle = -(degrees * kDegree);
  const double cos = rounded_to_15(std::cos(angle)), sin = rounded_to_15(std::sin(angle));
  const double x = static_cast<double>(width) / 2, y = static_cast<double>(height) / 2;
  return {cos, sin, cos * -x + sin * -y + 0.0 + x, -sin, cos, -sin * -x + cos * -y + 0.0 + y};
}

// The number that Pillow's Image.blend makes of `other` and `number`.
uint8_t blended(uint8_t other, uint8_t number, float factor) {
  settrain::blend(&other, factor, 1, &number);
  return number;
}

// Tables of a function of the number, the same for all channels.
template <class Function>
Tables tables_of(int64_t channels, const Function& function) {
  Tables tables(static_cast<size_t>(channels * 256));
  for (int v = 0; v < 256; ++v) tables[static_cast<size_t>(v)] = static_cast<uint8_t>(function(v));
  for (size_t i = 256; i < tables.size(); ++i) tables[i] = tables[i - 256];
  return tables;
}

// The mean luma, rounded.
uint8_t mean_grey(const Image& image, std::vector<uint8_t>& row) {
  int64_t sum = 0;
  const uint8_t* numbers = image.pixels.data();
  for (int64_t y = 0; y < image.height; ++y, numbers += image.width * image.channels) {
    const uint8_t* grey = numbers;
    if (image.channels == 3) {
      row.resize(static_cast<size_t>(image.width));
      grey_of(numbers, image.width, row.data());
      grey = row.data();
    }
    for (int64_t x = 0; x < image.width; ++x) sum += grey[x];
  }
  return static_cast<uint8_t>(static_cast<double>(sum) / static_cast<double>(pixels_of(image)) + 0.5);
}

void stretched_table(const int64_t* counts, uint8_t* table) {
  int low = 0, high = 255;
  while (low < 255 && counts[low] == 0) ++low;
  while (high > 0 && counts[high] == 0) --high;
  const double scale = high > low ? 255.0 / (high - low) : 1, offset = high > low ? -low * scale : 0;
  for (int v = 0; v < 256; ++v)
    table[v] = static_cast<uint8_t>(std::clamp(static_cast<int>(v * scale + offset), 0, 255));
}

void flattened_table(const int64_t* counts, uint8_t* table) {
  int64_t sum = 0, last = 0;
  for (int v = 0; v < 256; ++v) {
    sum += counts[v];
    if (counts[v] > 0) last = counts[v];
  }
  const int64_t step = (sum - last) / 255;
  int64_t before = step / 2;
  for (int v = 0; v < 256; ++v) {
    table[v] = static_cast<uint8_t>(step == 0 ? v : std::min<int64_t>(before / step, 255));
    before += counts[v];
  }
}

// Tables that follow from how often each channel has each number.
Tables tables_by_counts(OperationKind kind, const Image& image) {
  std::vector<int64_t> counts(static_cast<size_t>(image.channels * 256));
  count_numbers(image.pixels.data(), image.channels, pixels_of(image), counts.data());
  Tables tables(counts.size());
  for (size_t c = 0; c < counts.size(); c += 256)
    (kind == OperationKind::kEqualize ? flattened_table : stretched_table)(counts.data() + c, tables.data() + c);
  return tables;
}

// Hue, saturation and value, as Pillow's convert("HSV"): whole numbers, the hue in 255ths of a turn.
struct Hsv {
  uint8_t hue, saturation, value;
};

Hsv hsv_of(const uint8_t* rgb) {
  const uint8_t most = std::max({rgb[0], rgb[1], rgb[2]}), least = std::min({rgb[0], rgb[1], rgb[2]});
  if (most == least) return {0, 0, most};
  const auto range = static_cast<float>(most - least);
  const auto below = [&](int c) { return static_cast<float>(most - rgb[c]) / range; };
  const float red = below(0), green = below(1), blue = below(2);
  const float sixths = rgb[0] == most   ? blue - green
                       : rgb[1] == most ? static_cast<float>(2.0 + red - blue)
                                        : static_cast<float>(4.0 + green - red);
  const double turned = sixths / 6.0 + 1.0;  // below 2
  const auto turn = static_cast<float>(turned >= 1 ? turned - 1 : turned);
  const float saturation = range / static_cast<float>(most);
  return {static_cast<uint8_t>(turn * 255.0), static_cast<uint8_t>(saturation * 255.0), most};
}

// Where a hue lies: in which sixth of the turn, and how far within it.
struct Sextant {
  uint8_t number;
  float rest;
};

std::array<Sextant, 256> sextants() {
  std::array<Sextant, 256> all{};
  for (size_t hue = 0; hue < all.size(); ++hue) {
    const double sixths = static_cast<double>(hue) * 6.0 / 255.0, whole = std::floor(sixths);
    all[hue] = {static_cast<uint8_t>(static_cast<int>(whole) % 6), static_cast<float>(sixths - whole)};
  }
  return all;
}

void write_rgb(const Hsv& hsv, uint8_t* rgb) {
  static const std::array<Sextant, 256> kSextants = sextants();
  // Red, green and blue in each sextant: 0 is the value, 1 p, 2 q and 3 t.
  static constexpr uint8_t kPlaces[6][3] = {{0, 3, 1}, {2, 0, 1}, {1, 0, 3}, {1, 2, 0}, {3, 1, 0}, {0, 1, 2}};
  const auto [number, rest] = kSextants[hsv.hue];
  const auto share = static_cast<float>(hsv.saturation / 255.0);
  // The product of two floats is rounded to a float before the double 1 comes into play.
  const auto part = [&](double of_value) {
    return static_cast<uint8_t>(static_cast<float>(hsv.value) * of_value + 0.5);
  };
  const uint8_t numbers[4] = {hsv.value, part(1.0 - share), part(1.0 - share * rest), part(1.0 - share * (1.0 - rest))};
  for (int c = 0; c < 3; ++c) rgb[c] = numbers[kPlaces[number][c]];
}

void turn_hue(double share, Image& image) {
  const auto shift = static_cast<uint8_t>(static_cast<int32_t>(share * 255));
  for (size_t i = 0; i < image.pixels.size(); i += 3) {
    uint8_t* const rgb = image.pixels.data() + i;
    Hsv hsv = hsv_of(rgb);
    hsv.hue = static_cast<uint8_t>(hsv.hue + shift);
    write_rgb(hsv, rgb);
  }
}

}  // namespace

std::string describe(const ImageOperation& operation) {
  const auto* const found = std::ranges::find(kOperations, operation.kind, &NamedOperation::kind);
  return found->has_amount ? fmt::format("{} {:.3g}", found->name, operation.amount) : found->name;
}

void ImageEditor::warp(const ImageOperation& operation, Image& image) {
  using enum OperationKind;
  Matrix matrix{1, 0, 0, 0, 1, 0};
  if (operation.kind == kTranslateX) {
    matrix[2] = -operation.amount;
  } else if (operation.kind == kTranslateY) {
    matrix[5] = -operation.amount;
  } else if (operation.kind == kRotate) {
    matrix = rotation(operation.amount, image.height, image.width);
  } else {
    matrix = shear_of(operation);
  }
  moved_.resize(image.pixels.size());
  settrain::warp(image.pixels.data(), image.height, image.width, image.channels, fixed(matrix), moved_.data());
  image.pixels.swap(moved_);
}

// Pillow turns by a quarter, of a square, and by a half without a map of places.
void ImageEditor::rotate(double degrees, Image& image) {
  degrees = std::fmod(degrees, 360.0);
  if (degrees < 0) degrees += 360.0;
  if (degrees == 0) return;
  const bool is_quarter = (degrees == 90 || degrees == 270) && image.height == image.width;
  if (!is_quarter && degrees != 180) return warp({OperationKind::kRotate, degrees}, image);
  const int64_t last_y = image.height - 1, last_x = image.width - 1;
  moved_.resize(image.pixels.size());
  uint8_t* out = moved_.data();
  for (int64_t y = 0; y < image.height; ++y) {
    for (int64_t x = 0; x < image.width; ++x, out += image.channels) {
      const int64_t from_y = degrees == 180 ? last_y - y : degrees == 90 ? x : last_x - x;
      const int64_t from_x = degrees == 180 ? last_x - x : degrees == 90 ? last_y - y : y;
      std::copy_n(image.pixels.data() + (from_y * image.width + from_x) * image.channels, image.channels, out);
    }
  }
  image.pixels.swap(moved_);
}

void ImageEditor::map_numbers(const ImageOperation& operation, Image& image) {
  using enum OperationKind;
  const auto factor = static_cast<float>(operation.amount);
  Tables tables;
  if (operation.kind == kAutocontrast || operation.kind == kEqualize) {
    tables = tables_by_counts(operation.kind, image);
  } else if (operation.kind == kBrightness || operation.kind == kContrast) {
    const uint8_t other = operation.kind == kContrast ? mean_grey(image, row_) : uint8_t{0};
    tables = tables_of(image.channels, [&](int v) { return blended(other, static_cast<uint8_t>(v), factor); });
  } else if (operation.kind == kPosterize) {
    const int mask = ~((1 << (8 - static_cast<int>(operation.amount))) - 1);
    tables = tables_of(image.channels, [&](int v) { return v & mask; });
  } else {
    const double threshold = operation.kind == kSolarize ? operation.amount : 0;
    tables = tables_of(image.channels, [&](int v) { return v < threshold ? v : 255 - v; });
  }
  look_up(tables.data(), image.channels, pixels_of(image), image.pixels.data());
}

void ImageEditor::saturate(float factor, Image& image) {
  const int64_t length = image.width * 3;
  row_.resize(static_cast<size_t>(image.width));
  above_.resize(static_cast<size_t>(length));
  for (int64_t y = 0; y < image.height; ++y) {
    uint8_t* const pixels = image.pixels.data() + y * length;
    grey_of(pixels, image.width, row_.data());
    for (int64_t x = 0; x < image.width; ++x) std::fill_n(above_.data() + 3 * x, 3, row_[static_cast<size_t>(x)]);
    blend(above_.data(), factor, length, pixels);
  }
}

// The first and the last row, and the pixels at their ends, have no nine pixels around them, and stay.
void ImageEditor::sharpen(float factor, Image& image) {
  if (image.height < 3 || image.width < 3) return;
  const int64_t length = image.width * image.channels;
  smoothed_.resize(static_cast<size_t>(length));
  above_.assign(image.pixels.begin(), image.pixels.begin() + length);
  for (int64_t y = 1; y + 1 < image.height; ++y) {
    uint8_t* const pixels = image.pixels.data() + y * length;
    row_.assign(pixels, pixels + length);
    smooth_row(above_.data(), row_.data(), pixels + length, image.channels, image.width, smoothed_.data());
    blend(smoothed_.data(), factor, length, pixels);
    above_.swap(row_);
  }
}

void ImageEditor::apply(const ImageOperation& operation, Image& image) {
  using enum OperationKind;
  const bool is_grey = image.channels == 1;
  if ((!is_grey && image.channels != 3) || pixels_of(image) < 1)
    throw std::invalid_argument("ImageEditor: expected pixels of 1 or 3 channels");
  switch (operation.kind) {
    case kIdentity:
      return;
    case kShearX:
    case kShearY:
    case kTranslateX:
    case kTranslateY:
      return warp(operation, image);
    case kRotate:
      return rotate(operation.amount, image);
    case kColour:
      if (!is_grey) saturate(static_cast<float>(operation.amount), image);
      return;
    case kSharpness:
      return sharpen(static_cast<float>(operation.amount), image);
    case kHue:
      if (!is_grey) turn_hue(operation.amount, image);
      return;
    default:
      return map_numbers(operation, image);
  }
}

void fill_box(const Box& box, const std::vector<uint8_t>& colour, Image& image) {
  for (int64_t y = box.top; y < box.top + box.height; ++y) {
    uint8_t* pixel = image.pixels.data() + (y * image.width + box.left) * image.channels;
    for (int64_t x = 0; x < box.width; ++x) pixel = std::ranges::copy(colour, pixel).out;
  }
}

}  // namespace settrain
