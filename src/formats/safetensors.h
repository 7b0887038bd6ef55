// The safetensors file format, written: named tensors and text metadata, as Python's safetensors package has it.
// weight_file.h reads it.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "src/core/files.h"
#include "src/formats/safetensors_header.h"

namespace settrain {

/// Writes `tensors` (name, dtype and shape; begin and end are set here) through a temporary file. `write_bytes` is
/// called once for each, in the file's order, and writes the tensor's little-endian elements, contiguous; so no second
/// copy of them all is needed. The same tensors and metadata give the same bytes.
///
/// Throws RunError where the file cannot be written (the old one then stays), and for a tensor named "__metadata__" and
/// text that is not UTF-8, naming the entry.
void write_safetensors(const std::filesystem::path& file, std::vector<SafetensorsEntry> tensors,
                       const std::map<std::string, std::string>& metadata,
                       const std::function<void(const SafetensorsEntry&, AtomicFile&)>& write_bytes);

}  // namespace settrain
