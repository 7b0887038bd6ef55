#include "src/formats/zip.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <set>
#include <string_view>
#include <vector>

namespace settrain {
namespace {

// Sizes and signatures of the format's records (PKWARE's APPNOTE, 4.3).
constexpr uint64_t kLocalHeader = 30, kDirectoryEntry = 46, kEndRecord = 22, kEnd64Locator = 20, kEnd64Record = 56;
constexpr uint64_t kLongestComment = 65'535;
constexpr uint32_t kLocalMagic = 0x04034b50, kEntryMagic = 0x02014b50, kEndMagic = 0x06054b50,
                   kEnd64LocatorMagic = 0x07064b50, kEnd64Magic = 0x06064b50;
constexpr uint32_t kIn64 = 0xFFFFFFFF;  // the value is in a zip64 record
constexpr uint16_t kDeflated = 8;       // the method of compression
constexpr uint16_t kExtra64 = 1;        // the extra field with an entry's zip64 values
constexpr uint64_t kLongestDirectory = 16 * 1024 * 1024;

template <class Integer>
Integer little_endian(const std::string& bytes, uint64_t at) {
  Integer value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

constexpr auto u16 = little_endian<uint16_t>;
constexpr auto u32 = little_endian<uint32_t>;
constexpr auto u64 = little_endian<uint64_t>;

std::string piece(const InputFile& file, uint64_t begin, uint64_t size) {
  std::string bytes(size, '\0');
  file.read(bytes.data(), size, begin);
  return bytes;
}

[[noreturn]] void fail_member(const InputFile& file, const ZipMember& member, std::string_view what) {
  file.fail(fmt::format("member {} of its zip archive {}", shown(member.name), what));
}

struct Directory {
  uint64_t begin = 0, size = 0, members = 0;
};

// The record at the end of the file, behind which there is only a comment.
Directory find_directory(const InputFile& file) {
  const uint64_t tail_size = std::min(file.size(), kEndRecord + kLongestComment);
  const std::string tail = piece(file, file.size() - tail_size, tail_size);
  for (uint64_t at = tail_size < kEndRecord ? 0 : tail_size - kEndRecord + 1; at-- > 0;) {
    if (u32(tail, at) != kEndMagic || at + kEndRecord + u16(tail, at + 20) != tail_size) continue;
    const uint64_t place = file.size() - tail_size + at;
    Directory directory{u32(tail, at + 16), u32(tail, at + 12), u16(tail, at + 10)};
    // Where there is a zip64 record, it holds for all three.
    if (place >= kEnd64Locator) {
      const std::string locator = piece(file, place - kEnd64Locator, kEnd64Locator);
      if (u32(locator, 0) == kEnd64LocatorMagic) {
        const uint64_t begin = u64(locator, 8);
        if (begin > place || place - begin < kEnd64Record) file.fail("its zip64 record lies outside the file");
        const std::string record = piece(file, begin, kEnd64Record);
        if (u32(record, 0) != kEnd64Magic) file.fail("its zip64 record is damaged");
        directory = {u64(record, 48), u64(record, 40), u64(record, 32)};
      }
    }
    if (directory.begin > place || directory.size > place - directory.begin) {
      file.fail("the directory of its zip archive lies outside the file");
    }
    if (directory.size > kLongestDirectory) {
      file.fail(fmt::format("the directory of its zip archive has {} bytes, more than {}", directory.size,
                            kLongestDirectory));
    }
    return directory;
  }
  file.fail("it begins as a zip archive and has no directory at its end; it may have been cut short: get it again");
}

// An entry's values that did not fit in 32 bits: uncompressed size, compressed size, place; only those that did not.
void read_zip64(const InputFile& file, const std::string& extra, uint64_t& size, uint64_t& stored, uint64_t& header) {
  for (uint64_t at = 0; at + 4 <= extra.size();) {
    const uint64_t length = u16(extra, at + 2), end = at + 4 + length;
    if (end > extra.size()) break;
    if (u16(extra, at) == kExtra64) {
      uint64_t next = at + 4;
      for (uint64_t* value : {&size, &stored, &header}) {
        if (*value != kIn64) continue;
        if (next + 8 > end) file.fail("a zip64 entry of its zip archive is too short");
        *value = u64(extra, next);
        next += 8;
      }
      return;
    }
    at = end;
  }
}

ZipMember read_entry(const InputFile& file, const std::string& directory, uint64_t& at) {
  if (at + kDirectoryEntry > directory.size() || u32(directory, at) != kEntryMagic) {
    file.fail("the directory of its zip archive is damaged");
  }
  const uint64_t name_size = u16(directory, at + 28), extra_size = u16(directory, at + 30),
                 comment_size = u16(directory, at + 32);
  const uint64_t name_at = at + kDirectoryEntry, end = name_at + name_size + extra_size + comment_size;
  if (end > directory.size()) file.fail("the directory of its zip archive is damaged");
  ZipMember member{directory.substr(name_at, name_size), u32(directory, at + 42), u32(directory, at + 24), 0,
                   u32(directory, at + 16)};
  uint64_t stored = u32(directory, at + 20);
  read_zip64(file, directory.substr(name_at + name_size, extra_size), member.size, stored, member.header);
  const bool is_encrypted = u16(directory, at + 8) & 1, is_compressed = u16(directory, at + 10) != 0;
  member.is_plain = !is_encrypted && !is_compressed && stored == member.size;
  member.is_deflated = !is_encrypted && u16(directory, at + 10) == kDeflated;
  member.full_size = member.size;
  member.size = stored;
  at = end;
  return member;
}

// Where the member's bytes are, packed or not.
Storage packed_bytes(const InputFile& file, const ZipMember& member) {
  const std::string header = piece(file, member.header, kLocalHeader + member.name.size());
  const uint64_t begin = member.header + kLocalHeader + u16(header, 26) + u16(header, 28);
  if (u32(header, 0) != kLocalMagic || header.substr(kLocalHeader) != member.name ||
      u16(header, 26) != member.name.size() || begin > member.limit || member.size > member.limit - begin) {
    fail_member(file, member, "is not where the directory says");
  }
  return {begin, member.size, member.crc};
}

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

}  // namespace

std::vector<ZipMember> read_zip_directory(const InputFile& file) {
  const Directory found = find_directory(file);
  const std::string directory = piece(file, found.begin, found.size);
  std::vector<ZipMember> members;
  std::set<std::string> names;
  for (uint64_t at = 0; at < directory.size();) {
    members.push_back(read_entry(file, directory, at));
    if (!names.insert(members.back().name).second) fail_member(file, members.back(), "comes twice");
  }
  if (members.size() != found.members) {
    file.fail(fmt::format("the directory of its zip archive has {} members, where it says {}", members.size(),
                          found.members));
  }
  std::stable_sort(members.begin(), members.end(),
                   [](const ZipMember& a, const ZipMember& b) { return a.header < b.header; });
  for (size_t i = 0; i < members.size(); ++i) {
    ZipMember& member = members[i];
    member.limit = i + 1 < members.size() ? members[i + 1].header : found.begin;
    const uint64_t needed = kLocalHeader + member.name.size();
    if (member.header > member.limit || member.limit - member.header < needed ||
        member.limit - member.header - needed < member.size) {
      fail_member(file, member, "overlaps what comes after it");
    }
  }
  return members;
}

Storage locate(const InputFile& file, const ZipMember& member) {
  if (!member.is_plain) {
    fail_member(file, member,
                "is compressed or encrypted; torch.save stores its members as they are, and only those are read");
  }
  return packed_bytes(file, member);
}

std::vector<uint8_t> unpacked(const InputFile& file, const ZipMember& member) {
  const auto fail = [&](const char* what) { fail_member(file, member, what); };
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
  if (crc32_z(crc32(0, nullptr, 0), bytes.data(), bytes.size()) != member.crc) fail("is damaged: its checksum differs");
  return bytes;
}

void check_crc(const InputFile& file, const Storage& storage) {
  constexpr uint64_t kPiece = 1 << 20;
  if (storage.crc == 0) return;
  uLong crc = crc32(0, nullptr, 0);
  std::vector<Bytef> bytes(std::min(kPiece, storage.size));
  for (uint64_t done = 0; done < storage.size; done += bytes.size()) {
    bytes.resize(std::min(kPiece, storage.size - done));
    file.read(bytes.data(), bytes.size(), storage.begin + done);
    crc = crc32(crc, bytes.data(), static_cast<uInt>(bytes.size()));
  }
  if (crc != storage.crc) {
    file.fail("it is damaged: the " + std::to_string(storage.size) + " bytes from byte " +
              std::to_string(storage.begin) + " on have another checksum than its directory says. Get it again");
  }
}

}  // namespace settrain
