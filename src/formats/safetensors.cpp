#include "src/formats/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "src/core/error.h"
#include "src/core/strict_json.h"

namespace settrain {
namespace {

using Json = nlohmann::json;

static_assert(std::endian::native == std::endian::little, "the format is little-endian, and no bytes are swapped here");

constexpr const char* kMetadata = "__metadata__";
constexpr size_t kMaxDepth = 3;  // header object, entry, shape

std::map<std::string, std::string> decode_metadata(const Json& json, const std::string& place) {
  if (!json.is_object()) throw RunError(place + ": __metadata__ is not a map of texts");
  std::map<std::string, std::string> metadata;
  for (const auto& [name, value] : json.items()) {
    if (!value.is_string()) throw RunError(place + ": __metadata__ " + shown(name) + " is not a text");
    metadata[name] = value.get<std::string>();
  }
  return metadata;
}

// Non-negative integers that fit in int64.
std::vector<int64_t> decode_integers(const Json& json, const std::string& what) {
  if (!json.is_array()) throw RunError(what + " is not a list");
  std::vector<int64_t> values;
  for (const Json& value : json) {
    if (!value.is_number_unsigned() || value.get<uint64_t>() > std::numeric_limits<int64_t>::max()) {
      throw RunError(what + " holds something that is not an integer from 0 to 2^63 - 1");
    }
    values.push_back(value.get<int64_t>());
  }
  return values;
}

Dtype decode_dtype(const Json& json, const std::string& what) {
  std::string known;
  for (const DtypeNames& names : dtypes()) {
    if (json.is_string() && json.get_ref<const std::string&>() == names.safetensors) return names.dtype;
    known += (known.empty() ? "" : ", ") + std::string(names.safetensors);
  }
  const std::string got = json.is_string() ? shown(json.get<std::string>()) : "something that is not a text";
  throw RunError(what + ": its dtype is " + got + ", which this program does not read; it reads " + known);
}

TensorEntry located(const SafetensorsEntry& entry, uint64_t data_start) {
  return {{entry.name},
          entry.dtype,
          entry.shape,
          row_major_strides(entry.shape),
          0,
          {data_start + entry.begin, entry.size()}};
}

SafetensorsEntry decode_entry(const std::string& name, const Json& json, uint64_t data_size, const std::string& place) {
  const std::string what = place + ": tensor " + shown(name);
  if (!json.is_object() || json.size() != 3 || !json.contains("dtype") || !json.contains("shape") ||
      !json.contains("data_offsets")) {
    throw RunError(what + ": expected the keys dtype, shape and data_offsets, and no others");
  }
  SafetensorsEntry entry{name, decode_dtype(json["dtype"], what), decode_integers(json["shape"], what + ": its shape")};
  const std::vector<int64_t> offsets = decode_integers(json["data_offsets"], what + ": its data_offsets");
  const bool is_range = offsets.size() == 2 && offsets[0] <= offsets[1];
  if (!is_range || static_cast<uint64_t>(offsets[1]) > data_size) {
    throw RunError(what + ": its data_offsets are not a range within the " + std::to_string(data_size) +
                   " bytes of data" + (is_range ? "; the file may be cut off" : ""));
  }
  entry.begin = static_cast<uint64_t>(offsets[0]);
  entry.end = static_cast<uint64_t>(offsets[1]);
  const std::string problem = shape_problem(entry.dtype, entry.shape);
  if (!problem.empty()) throw RunError(what + ": " + problem);
  const uint64_t expected = located(entry, 0).num_bytes();
  if (entry.size() != expected) {
    throw RunError(what + ": its shape and dtype take " + std::to_string(expected) + " bytes, its data_offsets " +
                   std::to_string(entry.size()));
  }
  return entry;
}

}  // namespace

std::string encode_safetensors_header(const SafetensorsHeader& header, const std::string& place) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (!header.metadata.empty()) json[kMetadata] = header.metadata;
  for (const SafetensorsEntry& entry : header.entries) {
    json[entry.name] = {{"dtype", names_of(entry.dtype).safetensors},
                        {"shape", entry.shape},
                        {"data_offsets", {entry.begin, entry.end}}};
  }
  std::string text;
  try {
    text = json.dump();
  } catch (const Json::exception&) {
    throw RunError(place + ": a tensor's name or a metadata text is not UTF-8");
  }
  // The length in front takes 8 bytes itself.
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

SafetensorsHeader decode_safetensors_header(std::string_view json, uint64_t data_size, const std::string& place) {
  if (json.empty() || json.front() != '{') throw RunError(place + ": the header does not start with '{'");
  Json parsed;
  try {
    parsed = parse_strict_json(json, kMaxDepth);
  } catch (const std::invalid_argument& problem) {
    throw RunError(place + ": the header " + problem.what());
  }
  SafetensorsHeader header;
  for (const auto& [name, value] : parsed.items()) {
    if (name == kMetadata) {
      header.metadata = decode_metadata(value, place);
    } else {
      header.entries.push_back(decode_entry(name, value, data_size, place));
    }
  }
  std::sort(header.entries.begin(), header.entries.end(),
            [](const auto& a, const auto& b) { return std::tie(a.begin, a.end) < std::tie(b.begin, b.end); });
  uint64_t reached = 0;
  for (const SafetensorsEntry& entry : header.entries) {
    if (entry.begin != reached) {
      throw RunError(place + ": tensor " + shown(entry.name) + " starts at byte " + std::to_string(entry.begin) +
                     " of the data, where the one before ends at " + std::to_string(reached));
    }
    reached = entry.end;
  }
  if (reached != data_size) {
    throw RunError(place + ": " + std::to_string(data_size - reached) + " bytes after the last tensor belong to none");
  }
  return header;
}

Contents safetensors_contents(const InputFile& file) {
  uint64_t length = 0;
  if (file.size() < sizeof length) {
    throw RunError(file.place() + " is not a safetensors file: it has " + std::to_string(file.size()) +
                   " bytes, fewer than the 8 of the header's length");
  }
  file.read(&length, sizeof length, 0);
  const uint64_t limit = std::min(kMaxSafetensorsHeader, file.size() - sizeof length);
  if (length > limit) {
    throw RunError(file.place() + " is not a safetensors file, or is cut off: its header would have " +
                   std::to_string(length) + " bytes, at most " + std::to_string(limit) + " are possible");
  }
  std::string json(length, '\0');
  file.read(json.data(), length, sizeof length);
  const uint64_t data_start = sizeof length + length;
  SafetensorsHeader header = decode_safetensors_header(json, file.size() - data_start, file.place());
  Contents contents{.format = "safetensors", .metadata = std::move(header.metadata)};
  for (const SafetensorsEntry& entry : header.entries) contents.tensors.push_back(located(entry, data_start));
  return contents;
}

void write_safetensors(const std::filesystem::path& file, std::vector<SafetensorsEntry> tensors,
                       const std::map<std::string, std::string>& metadata,
                       const std::function<void(const SafetensorsEntry&, AtomicFile&)>& write_bytes) {
  const std::string place = fmt::format("'{}'", file.string());
  // Wide elements first, as Python's package has it: every tensor is then aligned to its elements.
  std::stable_sort(tensors.begin(), tensors.end(),
                   [](const auto& a, const auto& b) { return bytes_of(a.dtype) > bytes_of(b.dtype); });
  uint64_t offset = 0;
  for (SafetensorsEntry& entry : tensors) {
    if (entry.name == kMetadata) throw RunError(place + ": a tensor cannot be named __metadata__");
    entry.begin = offset;
    for (offset = bytes_of(entry.dtype); const int64_t size : entry.shape) offset *= static_cast<uint64_t>(size);
    entry.end = offset += entry.begin;
  }
  const SafetensorsHeader header{std::move(tensors), metadata};
  const std::string json = encode_safetensors_header(header, place);
  const uint64_t length = json.size();
  if (length > kMaxSafetensorsHeader) {
    throw RunError(
        fmt::format("{}: its header, with {} tensors and {} texts, would have {} bytes, and readers accept {}", place,
                    header.entries.size(), metadata.size(), length, kMaxSafetensorsHeader));
  }
  AtomicFile output(file);
  output.write(&length, sizeof length);
  output.write(json);
  for (const SafetensorsEntry& entry : header.entries) write_bytes(entry, output);
  output.commit();
}

}  // namespace settrain
