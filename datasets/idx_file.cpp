#include "datasets/idx_file.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <span>

#include "src/core/digest.h"
#include "src/core/error.h"

namespace settrain {
namespace {

constexpr uint8_t kUnsignedByte = 0x08;  // the type code in the third byte of an IDX file

// Reads a file through zlib, which takes plain files as they are.
class Reader {
 public:
  explicit Reader(const std::filesystem::path& file) : name_(file.string()), file_(gzopen(name_.c_str(), "rb")) {
    if (!file_) fail(std::strerror(errno));
  }

  // Fills `bytes` as far as the file goes and returns how many that were.
  size_t read(std::span<uint8_t> bytes) {
    const int got = gzread(file_.get(), bytes.data(), static_cast<unsigned>(bytes.size()));
    // At a truncated end gzread returns what there is and only gzerror knows.
    int code = Z_OK;
    const char* message = gzerror(file_.get(), &code);
    if (got < 0 || code != Z_OK) fail(code == Z_BUF_ERROR ? "the compressed data end too early" : message);
    sha_.add(bytes.first(static_cast<size_t>(got)));
    return static_cast<size_t>(got);
  }

  std::string sha256() { return sha_.hex(); }

  [[noreturn]] void fail(const std::string& what) const {
    throw DataError(fmt::format("'{}': {}. Get the file again", name_, what));
  }

 private:
  struct Close {
    void operator()(gzFile_s* file) const { gzclose(file); }
  };
  std::string name_;
  std::unique_ptr<gzFile_s, Close> file_;
  Sha256 sha_;
};

uint32_t big_endian(const uint8_t* bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | uint32_t{bytes[3]};
}

std::vector<int64_t> read_header(Reader& reader, int rank, int64_t max_values) {
  std::array<uint8_t, 4> magic;
  if (reader.read(magic) != magic.size()) reader.fail("an IDX file starts with 4 bytes, this one is shorter");
  if (magic[0] != 0 || magic[1] != 0 || magic[2] != kUnsignedByte || magic[3] != rank) {
    reader.fail(
        fmt::format("expected an IDX file of unsigned bytes with {} dimensions (it starts 00 00 08 {:02x}), got "
                    "{:02x} {:02x} {:02x} {:02x}",
                    rank, rank, magic[0], magic[1], magic[2], magic[3]));
  }
  std::vector<int64_t> sizes;
  int64_t total = 1;
  for (int i = 0; i < rank; ++i) {
    std::array<uint8_t, 4> bytes;
    if (reader.read(bytes) != bytes.size()) reader.fail("the IDX header ends too early");
    sizes.push_back(big_endian(bytes.data()));
    // Compared by division, since a product of hostile sizes overflows.
    if (sizes.back() > 0 && total > max_values / sizes.back()) {
      reader.fail(fmt::format("the IDX header declares more than {} values", max_values));
    }
    total *= sizes.back();
  }
  return sizes;
}

}  // namespace

IdxArray read_idx(const std::filesystem::path& file, int rank, int64_t max_values) {
  Reader reader(file);
  IdxArray array;
  array.sizes = read_header(reader, rank, max_values);
  size_t declared = 1;
  for (const int64_t size : array.sizes) declared *= static_cast<size_t>(size);

  constexpr size_t kPiece = size_t{1} << 20;
  while (array.values.size() < declared) {
    const size_t before = array.values.size();
    array.values.resize(std::min(declared, before + kPiece));
    const size_t got = reader.read(std::span(array.values).subspan(before));
    if (got == 0) reader.fail(fmt::format("the IDX header declares {} values, the file holds {}", declared, before));
    array.values.resize(before + got);
  }
  // Reading on also makes zlib compare the checksum at the end.
  uint8_t extra;
  if (reader.read(std::span(&extra, 1)) != 0) {
    reader.fail(fmt::format("the file holds more than the {} values that its IDX header declares", declared));
  }
  array.sha256 = reader.sha256();
  return array;
}

}  // namespace settrain
