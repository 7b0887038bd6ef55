#include "src/formats/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "src/core/error.h"

namespace settrain {

static_assert(std::endian::native == std::endian::little, "the format is little-endian, and no bytes are swapped here");

void write_safetensors(const std::filesystem::path& file, std::vector<SafetensorsEntry> tensors,
                       const std::map<std::string, std::string>& metadata,
                       const std::function<void(const SafetensorsEntry&, AtomicFile&)>& write_bytes) {
  const std::string place = fmt::format("'{}'", file.string());
  // Wide elements first, as Python's package has it: every tensor is then aligned to its elements.
  std::stable_sort(tensors.begin(), tensors.end(),
                   [](const auto& a, const auto& b) { return bytes_of(a.dtype) > bytes_of(b.dtype); });
  uint64_t offset = 0;
  for (SafetensorsEntry& entry : tensors) {
    if (entry.name == "__metadata__") throw RunError(place + ": a tensor cannot be named __metadata__");
    entry.begin = offset;
    for (offset = bytes_of(entry.dtype); const int64_t size : entry.shape) offset *= static_cast<uint64_t>(size);
    entry.end = offset += entry.begin;
  }
  const SafetensorsHeader header{std::move(tensors), metadata};
  const std::string json = encode_safetensors_header(header, place);
  const uint64_t length = json.size();
  AtomicFile output(file);
  output.write(&length, sizeof length);
  output.write(json);
  for (const SafetensorsEntry& entry : header.entries) write_bytes(entry, output);
  output.commit();
}

}  // namespace settrain
