#include "src/weights/weight_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "src/weights/crc_check.h"
#include "src/weights/safetensors_header.h"
#include "src/weights/torch_file.h"

namespace settrain {
namespace {

constexpr uint64_t kMostRepetition = 8;

Contents contents_of(const InputFile& file) {
  std::string start(std::min<uint64_t>(file.size(), 9), '\0');
  file.read(start.data(), start.size(), 0);
  if (start.empty()) file.fail("it is empty");
  if (start.starts_with("PK")) return zip_contents(file);
  if (start[0] == '\x80') return legacy_contents(file);
  if (start.size() == 9 && start[8] == '{') return safetensors_contents(file);
  file.fail("it is no file of weights: neither safetensors nor what torch.save writes");
}

void check_total(const InputFile& file, const Contents& contents) {
  const uint64_t limit = kMostRepetition * file.size();
  uint64_t total = 0;
  for (const TensorEntry& entry : contents.tensors) {
    total += std::min(entry.num_bytes(), limit + 1);
    if (total <= limit) continue;
    file.fail(
        fmt::format("its tensors, up to {}, would take more than {} times its {} bytes; store no views that repeat",
                    shown(joined(entry.path)), kMostRepetition, file.size()));
  }
}

// Copies the elements of `entry` from `memory`, where its first one is at the beginning.
void gather(const TensorEntry& entry, const uint8_t* memory, uint8_t* target) {
  const size_t rank = entry.shape.size();
  const uint64_t width = bytes_of(entry.dtype);
  std::vector<int64_t> index(rank, 0);
  int64_t place = 0;
  for (int64_t left = entry.num_elements(); left > 0; --left, target += width) {
    std::memcpy(target, memory + static_cast<uint64_t>(place) * width, width);
    for (size_t d = rank; d-- > 0;) {
      if (entry.shape[d] == 1) continue;  // its stride may be any number
      place += entry.stride[d];
      if (++index[d] < entry.shape[d]) break;
      place -= entry.stride[d] * entry.shape[d];
      index[d] = 0;
    }
  }
}

}  // namespace

WeightFile::WeightFile(const std::filesystem::path& path) : file_(path), contents_(contents_of(file_)) {
  check_total(file_, contents_);
}

void WeightFile::read(const TensorEntry& entry, void* target) {
  if (!checked_.contains(entry.storage)) {
    check_crc(file_, entry.storage);
    checked_.insert(entry.storage);
  }
  read_tensor(file_, entry, target);
}

void read_tensor(const InputFile& file, const TensorEntry& entry, void* target) {
  if (entry.num_elements() == 0) return;
  const uint64_t width = bytes_of(entry.dtype),
                 begin = entry.storage.begin + static_cast<uint64_t>(entry.offset) * width;
  if (entry.is_contiguous()) {
    file.read(target, entry.num_bytes(), begin);
  } else {
    uint64_t last = 0;
    for (size_t d = 0; d < entry.shape.size(); ++d)
      last += static_cast<uint64_t>((entry.shape[d] - 1) * entry.stride[d]);
    std::vector<uint8_t> memory((last + 1) * width);
    file.read(memory.data(), memory.size(), begin);
    gather(entry, memory.data(), static_cast<uint8_t*>(target));
  }
  if (entry.dtype == Dtype::kBool) {
    const auto* bytes = static_cast<const uint8_t*>(target);
    if (std::any_of(bytes, bytes + entry.num_bytes(), [](uint8_t byte) { return byte > 1; })) {
      file.fail("tensor " + shown(joined(entry.path)) + " is of truth values and holds bytes other than 0 and 1");
    }
  }
}

}  // namespace settrain
