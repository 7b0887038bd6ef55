// The checksum of TensorBoard's event files.
#pragma once

#include <cstdint>
#include <string_view>

namespace settrain {

/// CRC-32C (Castagnoli) of `bytes`, as in RFC 3720, appendix B.4.
uint32_t crc32c(std::string_view bytes);

}  // namespace settrain
