#include "src/formats/npz.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "src/formats/contents.h"
#include "src/formats/input_file.h"
#include "src/formats/zip.h"

namespace settrain {
namespace {

constexpr std::string_view kEnding = ".npy", kNpyMagic = "\x93NUMPY";

// The header before an array's bytes (numpy.lib.format).
struct NumpyHeader {
  std::string descr;  // "<f4"
  bool fortran_order = false;
  std::vector<int64_t> shape;
};

// Reads a Python literal: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }.
class NumpyHeaderReader {
 public:
  explicit NumpyHeaderReader(std::string_view text) : rest_(text) {}

  std::optional<NumpyHeader> read() {
    NumpyHeader header;
    int found = 0;
    if (!take("{")) return std::nullopt;
    while (!take("}")) {
      const std::string key = quoted();
      if (!take(":")) return std::nullopt;
      if (key == "descr") {
        header.descr = quoted();
      } else if (key == "fortran_order") {
        header.fortran_order = take("True");
        if (!header.fortran_order && !take("False")) return std::nullopt;
      } else if (key == "shape") {
        if (!read_shape(header.shape)) return std::nullopt;
      } else {
        return std::nullopt;
      }
      ++found;
      take(",");
    }
    return found == 3 ? std::optional(header) : std::nullopt;
  }

 private:
  bool take(std::string_view word) {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \n"), rest_.size()));
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  std::string quoted() {
    if (!take("'")) return "";
    const size_t end = rest_.find('\'');
    if (end == std::string_view::npos) return "";
    std::string text(rest_.substr(0, end));
    rest_.remove_prefix(end + 1);
    return text;
  }

  bool read_shape(std::vector<int64_t>& shape) {
    if (!take("(")) return false;
    while (!take(")")) {
      int64_t size = 0;
      take("");  // blanks
      const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), size);
      if (error != std::errc() || size < 0 || shape.size() == kMostSizes) return false;
      shape.push_back(size);
      rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
      if (!take(",") && !rest_.starts_with(")")) return false;
    }
    return true;
  }

  std::string_view rest_;
};

std::vector<int64_t> column_major_strides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> stride(shape.size());
  uint64_t step = 1;  // may wrap around where a size is 0, and then is of no use
  for (size_t d = 0; d < shape.size(); ++d) {
    stride[d] = static_cast<int64_t>(step);
    step *= static_cast<uint64_t>(shape[d]);
  }
  return stride;
}

// The array in the bytes of a .npy file.
NumpyArray parse_npy(const InputFile& file, const std::string& name, std::vector<uint8_t> bytes) {
  const auto fail = [&](const std::string& what) { file.fail(fmt::format("array {}: {}", shown(name), what)); };
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.size() < 12 || !text.starts_with(kNpyMagic)) fail("it is no array as numpy.save writes it");
  const uint8_t version = bytes[6];
  if (version < 1 || version > 3) fail(fmt::format("format version {} is not known", version));
  const size_t begin = version == 1 ? 10 : 12;
  size_t length = bytes[8] | static_cast<size_t>(bytes[9]) << 8;
  if (version > 1) length |= static_cast<size_t>(bytes[10]) << 16 | static_cast<size_t>(bytes[11]) << 24;
  if (length > text.size() - begin) fail("its header is longer than the file");
  const auto header = NumpyHeaderReader(text.substr(begin, length)).read();
  if (!header) fail("its header cannot be read");
  const auto known = std::ranges::find(dtypes(), header->descr, &DtypeNames::numpy);
  if (header->descr.empty() || known == dtypes().end()) {
    fail(fmt::format(
        "of dtype {}; float16, 32 and 64, int8 to int64, uint8 to uint64 and truth values are read, little-endian",
        shown(header->descr)));
  }
  NumpyArray array{known->dtype, header->shape, {}, {}};
  if (const std::string problem = shape_problem(array.dtype, array.shape); !problem.empty()) fail(problem);
  array.stride = header->fortran_order ? column_major_strides(array.shape) : row_major_strides(array.shape);
  uint64_t expected = bytes_of(array.dtype);
  for (const int64_t size : array.shape) expected *= static_cast<uint64_t>(size);
  if (text.size() - begin - length != expected) {
    fail(fmt::format("has {} bytes, and its shape asks for {}", text.size() - begin - length, expected));
  }
  bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(begin + length));
  array.bytes = std::move(bytes);
  return array;
}

bool begins_with(const std::filesystem::path& path, std::string_view magic) {
  const InputFile file(path);
  std::string start(magic.size(), '\0');
  if (file.size() < start.size()) return false;
  file.read(start.data(), start.size(), 0);
  return start == magic;
}

}  // namespace

bool is_zip(const std::filesystem::path& path) {
  return begins_with(path, "PK");
}

bool is_npy(const std::filesystem::path& path) {
  return begins_with(path, kNpyMagic);
}

std::map<std::string, NumpyArray> read_npz(const std::filesystem::path& path, const std::set<std::string>& wanted) {
  const InputFile file(path);
  std::map<std::string, NumpyArray> arrays;
  for (const ZipMember& member : read_zip_directory(file)) {
    if (!member.name.ends_with(kEnding)) continue;
    const std::string name = member.name.substr(0, member.name.size() - kEnding.size());
    if (wanted.contains(name)) arrays.emplace(name, parse_npy(file, name, unpacked(file, member)));
  }
  return arrays;
}

}  // namespace settrain
