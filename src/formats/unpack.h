// The bytes of a zip archive's member.
#pragma once

#include <cstdint>
#include <vector>

#include "src/formats/zip_directory.h"

namespace settrain {

/// The member, stored or deflated, once unpacked. Throws RunError where it is encrypted, packed by another method, says
/// a size that its bytes cannot have, or is damaged (against its checksum too).
std::vector<uint8_t> unpacked(const InputFile& file, const ZipMember& member);

}  // namespace settrain
