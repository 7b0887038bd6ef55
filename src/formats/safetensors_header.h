// The header of a safetensors file: JSON that says where each tensor's bytes are.
//
// A file is: 8 bytes, the header's length as a little-endian integer; the header; the data. Offsets count from the
// start of the data.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "src/formats/contents.h"
#include "src/formats/input_file.h"

namespace settrain {

/// The longest header that is read, of some 100,000 tensors. The format allows 100 MB, which would take gigabytes to
/// parse.
inline constexpr uint64_t kMaxSafetensorsHeader = 16 * 1024 * 1024;

/// One tensor of the header.
struct SafetensorsEntry {
  std::string name;
  Dtype dtype;
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0;  // bytes, from the start of the data

  uint64_t size() const { return end - begin; }
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // in the order of the data
  std::map<std::string, std::string> metadata;
};

/// The JSON of `header`, padded with spaces so that the data start at a multiple of 8 bytes. Throws RunError, `place`
/// in front, where a name or a metadata text is not UTF-8.
std::string encode_safetensors_header(const SafetensorsHeader& header, const std::string& place);

/// Parses and checks everything about `json`, in front of `data_size` bytes of data. `place` names the file in
/// messages.
///
/// Throws RunError: not JSON, nested too deeply, a name twice, an unknown key or dtype, a shape whose bytes overflow or
/// are not those of its offsets, offsets outside the data, and tensors that overlap or leave gaps.
SafetensorsHeader decode_safetensors_header(std::string_view json, uint64_t data_size, const std::string& place);

/// What the file holds; its header is checked as above, the data are not read.
Contents safetensors_contents(const InputFile& file);

}  // namespace settrain
