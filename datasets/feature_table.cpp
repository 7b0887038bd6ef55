#include "datasets/feature_table.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "src/core/files.h"

namespace settrain {

FeatureTable::FeatureTable(std::vector<float> values, int64_t width)
    : size_(width > 0 ? std::ssize(values) / width : 0), width_(width), stored_(Stored::kFloat32) {
  if (width <= 0 || std::ssize(values) % width != 0)
    throw std::invalid_argument("FeatureTable: the width does not divide the values");
  const auto kept = std::make_shared<const std::vector<float>>(std::move(values));
  bytes_ = reinterpret_cast<const uint8_t*>(kept->data());
  owner_ = kept;
}

FeatureTable::FeatureTable(const std::filesystem::path& file, uint64_t offset, int64_t size, int64_t width,
                           Stored stored)
    : bytes_(nullptr), size_(size), width_(width), stored_(stored) {
  const uint64_t end = offset + static_cast<uint64_t>(size * width * bytes_of(stored));
  const Descriptor descriptor(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!descriptor.is_open()) throw read_error("open", file, errno);
  struct stat found {};
  if (::fstat(descriptor.get(), &found) != 0) throw read_error("read", file, errno);
  // A page beyond the file's end could be mapped, and would end the process when it is read.
  if (static_cast<uint64_t>(found.st_size) < end) {
    throw RunError(
        fmt::format("'{}' is cut off: it has {} bytes, and its rows end at {}", file.string(), found.st_size, end));
  }
  if (size == 0) return;
  void* start = ::mmap(nullptr, end, PROT_READ, MAP_PRIVATE, descriptor.get(), 0);
  if (start == MAP_FAILED) throw read_error("map", file, errno);
  ::madvise(start, end, MADV_WILLNEED);  // rows are read in any order, which the system would not foresee
  owner_ = std::shared_ptr<const void>(start, [end](const void* map) { ::munmap(const_cast<void*>(map), end); });
  bytes_ = static_cast<const uint8_t*>(start) + offset;
}

void FeatureTable::read(int64_t row, float* out) const {
  const auto count = static_cast<size_t>(width_);
  const uint8_t* from = bytes_ + row * width_ * bytes_of(stored_);
  if (stored_ == Stored::kFloat32) {
    std::memcpy(out, from, count * sizeof(float));
    return;
  }
  // A bfloat16 is the upper half of a float32.
  for (size_t i = 0; i < count; ++i) {
    uint16_t half = 0;
    std::memcpy(&half, from + i * sizeof half, sizeof half);
    out[i] = std::bit_cast<float>(static_cast<uint32_t>(half) << 16);
  }
}

}  // namespace settrain
