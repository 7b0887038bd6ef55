#include "src/formats/weight_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "src/formats/crc_check.h"
#include "src/formats/safetensors_header.h"
#include "src/formats/torch_file.h"

namespace settrain {
namespace {

constexpr uint64_t kMostRepetition = 8;

Contents contents_of(const InputFile& file) {
  std::string start(std::min<uint64_t>(file.size(), 9), '\0');
  file.read(start.data(), start.size(), 0);
  if (start.empty()) file.fail("it is empty");
  // First, since the length before it may be any bytes; the others never have this one there (in a zip archive it is
  // the method of compression, in a pickle a part of the magic number or of a frame's length).
  if (start.size() == 9 && start[8] == '{') return safetensors_contents(file);
  if (start.starts_with("PK")) return zip_contents(file);
  if (start[0] == '\x80') return legacy_contents(file);
  if (start.starts_with("<")) file.fail("it is no file of weights but a web page: the download went wrong");
  if (start == "version h")
    file.fail("it is no file of weights but a pointer of Git LFS: `git lfs pull` gets the file");
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

void check_truth_values(const InputFile& file, const TensorEntry& entry, const void* values) {
  const auto* bytes = static_cast<const uint8_t*>(values);
  if (entry.dtype == Dtype::kBool &&
      std::any_of(bytes, bytes + entry.num_bytes(), [](uint8_t byte) { return byte > 1; })) {
    file.fail("tensor " + shown(joined(entry.path)) + " is of truth values and holds bytes other than 0 and 1");
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
  if (entry.is_contiguous()) {
    read_contiguous(file_, entry, target);
    return;
  }
  // Whole storages are kept, which are no more bytes than the file has: each is read once, however many views it has.
  std::vector<uint8_t>& memory = storages_[entry.storage];
  if (memory.empty()) {
    memory.resize(entry.storage.size);
    file_.read(memory.data(), memory.size(), entry.storage.begin);
  }
  gather(entry, memory.data() + static_cast<uint64_t>(entry.offset) * bytes_of(entry.dtype),
         static_cast<uint8_t*>(target));
  check_truth_values(file_, entry, target);
}

void read_contiguous(const InputFile& file, const TensorEntry& entry, void* target) {
  file.read(target, entry.num_bytes(),
            entry.storage.begin + static_cast<uint64_t>(entry.offset) * bytes_of(entry.dtype));
  check_truth_values(file, entry, target);
}

}  // namespace settrain
