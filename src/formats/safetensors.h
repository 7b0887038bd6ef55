// The safetensors file format, read and written: named tensors and text metadata, as Python's safetensors package has
// it.
//
// A file is: 8 bytes, the header's length as a little-endian integer; the header, JSON that says where each tensor's
// bytes are; the data. Offsets count from the start of the data.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "src/core/files.h"
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

/// The contents of the file. Its header is checked as above; the data are not read.
Contents safetensors_contents(const InputFile& file);

/// Writes `tensors` (name, dtype and shape; begin and end are set here) through a temporary file. `write_bytes` is
/// called once for each, in the file's order, and writes the tensor's little-endian elements, contiguous; so no second
/// copy of them all is needed. The same tensors and metadata give the same bytes.
///
/// Throws RunError where the file cannot be written (the old one then stays), where its header would be longer than is
/// read, and for a tensor named "__metadata__" and text that is not UTF-8, naming the entry.
void write_safetensors(const std::filesystem::path& file, std::vector<SafetensorsEntry> tensors,
                       const std::map<std::string, std::string>& metadata,
                       const std::function<void(const SafetensorsEntry&, AtomicFile&)>& write_bytes);

}  // namespace settrain
