// The checksums of zip archives.
#pragma once

#include "src/formats/contents.h"
#include "src/formats/input_file.h"

namespace settrain {

/// Throws RunError where the bytes of `storage` have another CRC-32 than it says; nothing where it says none.
void check_crc(const InputFile& file, const Storage& storage);

}  // namespace settrain
