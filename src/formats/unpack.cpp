#include "src/formats/unpack.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <limits>

namespace settrain {
namespace {

// Deflate's best: 258 bytes from two bits.
constexpr uint64_t kMostRatio = 1032;
constexpr uint64_t kMostPiece = 1 << 30;  // zlib counts in 32 bits

// Whether `packed` inflates to exactly the bytes of `target`.
bool inflate_all(std::vector<uint8_t>& packed, std::vector<uint8_t>& target) {
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return false;
  uint64_t read = 0, written = 0;
  int state = Z_OK;
  while (state == Z_OK) {
    stream.next_in = packed.data() + read;
    stream.avail_in = static_cast<uInt>(std::min(packed.size() - read, kMostPiece));
    stream.next_out = target.data() + written;
    stream.avail_out = static_cast<uInt>(std::min(target.size() - written, kMostPiece));
    const uInt in = stream.avail_in, out = stream.avail_out;
    state = inflate(&stream, Z_NO_FLUSH);
    read += in - stream.avail_in;
    written += out - stream.avail_out;
    if (in == stream.avail_in && out == stream.avail_out) break;
  }
  inflateEnd(&stream);
  return state == Z_STREAM_END && written == target.size();
}

uint32_t crc_of(const std::vector<uint8_t>& bytes) {
  return static_cast<uint32_t>(crc32_z(crc32(0, nullptr, 0), bytes.data(), bytes.size()));
}

}  // namespace

std::vector<uint8_t> unpacked(const InputFile& file, const ZipMember& member) {
  const auto fail = [&](const char* what) {
    file.fail(fmt::format("member {} of its zip archive {}", shown(member.name), what));
  };
  if (!member.is_plain && !member.is_deflated) fail("is encrypted, or packed by another method than deflate");
  const Storage place = packed_bytes(file, member);
  if (member.full_size / kMostRatio > member.size + 1) fail("says that it unpacks to more bytes than it can");
  std::vector<uint8_t> bytes(member.size);
  file.read(bytes.data(), bytes.size(), place.begin);
  if (member.is_deflated) {
    std::vector<uint8_t> full(member.full_size);
    if (!inflate_all(bytes, full)) fail("is damaged");
    bytes = std::move(full);
  }
  if (crc_of(bytes) != member.crc) fail("is damaged: its checksum differs");
  return bytes;
}

}  // namespace settrain
