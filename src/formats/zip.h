// Zip archives, read: the directory, as torch.save and numpy.savez write one, members' bytes and their checksums.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/formats/contents.h"
#include "src/formats/input_file.h"

namespace settrain {

struct ZipMember {
  std::string name;
  uint64_t header = 0;   // where its local header begins in the file
  uint64_t size = 0;     // bytes in the archive
  uint64_t limit = 0;    // where the next member begins, or the directory
  uint32_t crc = 0;      // 0: not known (PyTorch can be told to compute none)
  bool is_plain = true;  // neither compressed nor encrypted
  bool is_deflated = false;
  uint64_t full_size = 0;  // bytes once unpacked, as the archive says
};

/// The members in the order of their places in the file; zip64 is understood. Throws RunError where the directory is
/// missing (as in a file that was cut short), longer than 16 MiB or damaged, where a member comes twice, overlaps
/// another, or does not lie within the file.
std::vector<ZipMember> read_zip_directory(const InputFile& file);

/// Where the member's bytes are. Throws RunError where its local header does not agree with the directory, and where
/// the bytes are compressed or encrypted.
Storage locate(const InputFile& file, const ZipMember& member);

/// The member, stored or deflated, once unpacked. Throws RunError where it is encrypted, packed by another method, says
/// a size that its bytes cannot have, or is damaged (against its checksum too).
std::vector<uint8_t> unpacked(const InputFile& file, const ZipMember& member);

/// Throws RunError where the bytes of `storage` have another CRC-32 than it says; nothing where it says none.
void check_crc(const InputFile& file, const Storage& storage);

}  // namespace settrain
