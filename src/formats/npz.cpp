#include "src/formats/npz.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "src/core/text.h"
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

// The bytes of a .npy file, and what its header says of them.
struct NumpyFile {
  const InputFile& file;
  const std::string& name;
  std::vector<uint8_t> bytes;
  NumpyHeader header{};
  size_t begin = 0;  // of the elements

  [[noreturn]] void fail(const std::string& what) const { file.fail(fmt::format("array {}: {}", shown(name), what)); }

  // `element`: bytes.
  void check_size(uint64_t element) const {
    uint64_t expected = element;
    for (const int64_t size : header.shape) expected *= static_cast<uint64_t>(size);
    if (bytes.size() - begin != expected)
      fail(fmt::format("has {} bytes, and its shape asks for {}", bytes.size() - begin, expected));
  }
};

NumpyFile parse_npy_header(const InputFile& file, const std::string& name, std::vector<uint8_t> bytes) {
  NumpyFile npy{file, name, std::move(bytes)};
  const std::string_view text(reinterpret_cast<const char*>(npy.bytes.data()), npy.bytes.size());
  if (text.size() < 12 || !text.starts_with(kNpyMagic)) npy.fail("it is no array as numpy.save writes it");
  const uint8_t version = npy.bytes[6];
  if (version < 1 || version > 3) npy.fail(fmt::format("format version {} is not known", version));
  const size_t begin = version == 1 ? 10 : 12;
  size_t length = npy.bytes[8] | static_cast<size_t>(npy.bytes[9]) << 8;
  if (version > 1) length |= static_cast<size_t>(npy.bytes[10]) << 16 | static_cast<size_t>(npy.bytes[11]) << 24;
  if (length > text.size() - begin) npy.fail("its header is longer than the file");
  auto header = NumpyHeaderReader(text.substr(begin, length)).read();
  if (!header) npy.fail("its header cannot be read");
  npy.header = std::move(*header);
  npy.begin = begin + length;
  return npy;
}

NumpyArray parse_npy(NumpyFile npy) {
  const auto known = std::ranges::find(dtypes(), npy.header.descr, &DtypeNames::numpy);
  if (npy.header.descr.empty() || known == dtypes().end()) {
    npy.fail(fmt::format(
        "of dtype {}; float16, 32 and 64, int8 to int64, uint8 to uint64 and truth values are read, little-endian",
        shown(npy.header.descr)));
  }
  NumpyArray array{known->dtype, npy.header.shape, {}, {}};
  if (const std::string problem = shape_problem(array.dtype, array.shape); !problem.empty()) npy.fail(problem);
  array.stride = npy.header.fortran_order ? column_major_strides(array.shape) : row_major_strides(array.shape);
  npy.check_size(bytes_of(array.dtype));
  npy.bytes.erase(npy.bytes.begin(), npy.bytes.begin() + static_cast<std::ptrdiff_t>(npy.begin));
  array.bytes = std::move(npy.bytes);
  return array;
}

// False where there is no such character.
bool append_utf8(uint32_t code, std::string& text) {
  const auto rest = [&](int shift) { text += static_cast<char>(0x80 | ((code >> shift) & 0x3f)); };
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += static_cast<char>(0xc0 | (code >> 6));
    rest(0);
  } else if (code < 0x10000) {
    if (code >= 0xd800 && code < 0xe000) return false;
    text += static_cast<char>(0xe0 | (code >> 12));
    rest(6);
    rest(0);
  } else if (code < 0x110000) {
    text += static_cast<char>(0xf0 | (code >> 18));
    rest(12);
    rest(6);
    rest(0);
  } else {
    return false;
  }
  return true;
}

// Every text takes as many characters of 4 bytes as the longest, zeros behind its end.
std::vector<std::string> parse_npy_texts(const NumpyFile& npy) {
  const std::string& descr = npy.header.descr;
  int64_t length = 0;
  const char* const end = descr.data() + descr.size();
  if (!descr.starts_with("<U") || std::from_chars(descr.data() + 2, end, length).ptr != end || length < 0)
    npy.fail(fmt::format("of dtype {}; expected texts, such as <U5", shown(descr)));
  if (npy.header.shape.size() != 1) npy.fail(fmt::format("has {} dimensions, expected 1", npy.header.shape.size()));
  if (const std::string problem = shape_problem(Dtype::kUint32, {npy.header.shape[0], length}); !problem.empty())
    npy.fail(problem);
  npy.check_size(static_cast<uint64_t>(length) * sizeof(uint32_t));
  std::vector<std::string> texts;
  if (length == 0) return texts;
  const uint8_t* at = npy.bytes.data() + npy.begin;
  for (int64_t i = 0; i < npy.header.shape[0]; ++i) {
    std::string& text = texts.emplace_back();
    for (int64_t c = 0; c < length; ++c, at += sizeof(uint32_t)) {
      uint32_t code = 0;
      std::memcpy(&code, at, sizeof code);
      if (code != 0 && !append_utf8(code, text)) npy.fail(fmt::format("text {} has no valid characters", i));
    }
  }
  return texts;
}

bool begins_with(const std::filesystem::path& path, std::string_view magic) {
  const InputFile file(path);
  std::string start(magic.size(), '\0');
  if (file.size() < start.size()) return false;
  file.read(start.data(), start.size(), 0);
  return start == magic;
}

template <class Integer>
std::string encoded(Integer value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

// Values of the zip format (PKWARE's APPNOTE, 4.3 and 4.5). All sizes and places are in zip64 fields, as archives of
// more than 4 GiB need them.
constexpr uint16_t kVersion64 = 45, kField64 = 1, kUtf8Names = 1 << 11, kFirstOf1980 = 33;
constexpr uint32_t kInField64 = 0xFFFFFFFF;

// The fields that a member's local header and its entry in the directory have in common: from the version to the
// checksum, then the sizes.
std::string member_fields(uint32_t crc) {
  return encoded(kVersion64) + encoded(kUtf8Names) + encoded(uint16_t{0}) + encoded(uint16_t{0}) +
         encoded(kFirstOf1980) + encoded(crc) + encoded(kInField64) + encoded(kInField64);
}

std::u32string characters_of(const std::string& text) {
  constexpr char32_t kReplacement = 0xFFFD;
  std::u32string characters;
  for (size_t at = 0; at < text.size();) {
    const std::optional<char32_t> character = next_code_point(text, at);
    if (!character) ++at;
    characters += character.value_or(kReplacement);
  }
  return characters;
}

std::string shape_literal(const std::vector<int64_t>& shape) {
  std::string text = "(";
  for (const int64_t size : shape) text += fmt::format("{}, ", size);
  return text + ")";
}

// The bytes in front of an array's own, a multiple of 64.
std::string npy_header(const std::string& descr, const std::vector<int64_t>& shape) {
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", descr, shape_literal(shape));
  constexpr size_t kFront = 10, kMultiple = 64;
  header.resize((kFront + header.size() + kMultiple) / kMultiple * kMultiple - kFront - 1, ' ');
  header += '\n';
  return std::string(kNpyMagic) + std::string("\x01\x00", 2) + encoded(static_cast<uint16_t>(header.size())) + header;
}

}  // namespace

bool is_zip(const std::filesystem::path& path) {
  return begins_with(path, "PK");
}

bool is_npy(const std::filesystem::path& path) {
  return begins_with(path, kNpyMagic);
}

namespace {

template <typename Parsed, typename Parse>
std::map<std::string, Parsed> read_members(const std::filesystem::path& path, const std::set<std::string>& wanted,
                                           const Parse& parse) {
  const InputFile file(path);
  std::map<std::string, Parsed> arrays;
  for (const ZipMember& member : read_zip_directory(file)) {
    if (!member.name.ends_with(kEnding)) continue;
    const std::string name = member.name.substr(0, member.name.size() - kEnding.size());
    if (wanted.contains(name)) arrays.emplace(name, parse(parse_npy_header(file, name, unpacked(file, member))));
  }
  return arrays;
}

}  // namespace

std::map<std::string, NumpyArray> read_npz(const std::filesystem::path& path, const std::set<std::string>& wanted) {
  return read_members<NumpyArray>(path, wanted, parse_npy);
}

std::map<std::string, std::vector<std::string>> read_npz_texts(const std::filesystem::path& path,
                                                               const std::set<std::string>& wanted) {
  return read_members<std::vector<std::string>>(path, wanted, parse_npy_texts);
}

void NpzWriter::add(const std::string& name, Dtype dtype, const std::vector<int64_t>& shape,
                    std::span<const std::byte> bytes) {
  const std::string problem = shape_problem(dtype, shape);
  uint64_t expected = bytes_of(dtype);
  for (const int64_t size : shape) expected *= static_cast<uint64_t>(size);
  if (names_of(dtype).numpy.empty() || !problem.empty() || bytes.size() != expected) {
    throw std::invalid_argument(fmt::format("array {}: {}", name, problem.empty() ? "its bytes are others" : problem));
  }
  add_array(name, std::string(names_of(dtype).numpy), shape, bytes);
}

void NpzWriter::add_texts(const std::string& name, const std::vector<std::string>& texts) {
  size_t longest = 1;  // NumPy has no texts of no characters
  for (const std::string& text : texts) longest = std::max(longest, characters_of(text).size());
  std::u32string all;
  all.reserve(texts.size() * longest);
  for (size_t i = 0; i < texts.size(); ++i) {
    all += characters_of(texts[i]);
    all.resize((i + 1) * longest);
  }
  add_array(name, fmt::format("<U{}", longest), {std::ssize(texts)}, std::as_bytes(std::span(all)));
}

void NpzWriter::add_array(const std::string& name, const std::string& descr, const std::vector<int64_t>& shape,
                          std::span<const std::byte> bytes) {
  const std::string header = npy_header(descr, shape), member = name + std::string(kEnding);
  const auto update = [](uLong crc, const void* data, size_t size) {
    return size == 0 ? crc : crc32_z(crc, static_cast<const Bytef*>(data), size);  // zlib would begin anew at null
  };
  const auto crc = static_cast<uint32_t>(update(update(0, header.data(), header.size()), bytes.data(), bytes.size()));
  const uint64_t size = header.size() + bytes.size();
  const std::string sizes = encoded(size) + encoded(size);
  const auto name_size = static_cast<uint16_t>(member.size());

  const auto extra = [](const std::string& values) {
    return encoded(kField64) + encoded(static_cast<uint16_t>(values.size())) + values;
  };
  const std::string local_extra = extra(sizes), entry_extra = extra(sizes + encoded(size_));
  directory_ += "PK\x01\x02" + encoded(kVersion64) + member_fields(crc) + encoded(name_size) +
                encoded(static_cast<uint16_t>(entry_extra.size())) + std::string(10, '\0') + encoded(kInField64) +
                member + entry_extra;
  const std::string local = "PK\x03\x04" + member_fields(crc) + encoded(name_size) +
                            encoded(static_cast<uint16_t>(local_extra.size())) + member + local_extra;
  output_.write(local);
  output_.write(header);
  output_.write(bytes.data(), bytes.size());
  size_ += local.size() + size;
  ++members_;
}

void NpzWriter::commit() {
  constexpr uint64_t kRestOfRecord = 44;
  output_.write(directory_);
  const uint64_t directory_size = directory_.size();
  output_.write("PK\x06\x06" + encoded(kRestOfRecord) + encoded(kVersion64) + encoded(kVersion64) +
                std::string(8, '\0') + encoded(members_) + encoded(members_) + encoded(directory_size) +
                encoded(size_));
  output_.write("PK\x06\x07" + std::string(4, '\0') + encoded(size_ + directory_size) + encoded(uint32_t{1}));
  output_.write("PK\x05\x06" + std::string(4, '\0') + std::string(4, '\xff') + std::string(8, '\xff') +
                std::string(2, '\0'));
  output_.commit();
}

}  // namespace settrain
