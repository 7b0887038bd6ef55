// The directory of a zip archive, as torch.save and numpy.savez write one.
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

/// Where the member's bytes are, packed or not. Throws RunError where its local header does not agree with the
/// directory.
Storage packed_bytes(const InputFile& file, const ZipMember& member);

/// The same, and throws RunError where they are compressed or encrypted.
Storage locate(const InputFile& file, const ZipMember& member);

}  // namespace settrain
