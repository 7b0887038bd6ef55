#include "src/run/safetensors.h"

#include <ATen/ops/empty.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>

#include "src/core/atomic_file.h"
#include "src/run/safetensors_header.h"

namespace settrain {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian, and no bytes are swapped here");

std::string quoted(const std::filesystem::path& file) {
  return fmt::format("'{}'", file.string());
}

SafetensorsHeader header_for(const TensorMap& tensors, const TextMap& metadata, const std::string& place) {
  SafetensorsHeader header{{}, metadata};
  for (const auto& [name, tensor] : tensors) {
    if (name == "__metadata__") throw RunError(place + ": a tensor cannot be named __metadata__");
    if (!tensor.defined() || tensor.layout() != at::kStrided || !safetensors_dtype(tensor.scalar_type())) {
      throw RunError(place + ": tensor '" + name +
                     "' is undefined, sparse, or of a dtype that safetensors files do not hold");
    }
    header.entries.push_back({name, tensor.scalar_type(), tensor.sizes().vec()});
  }
  // Wide elements first, as Python's package has it: every tensor is then aligned to its elements.
  std::stable_sort(header.entries.begin(), header.entries.end(),
                   [](const auto& a, const auto& b) { return c10::elementSize(a.dtype) > c10::elementSize(b.dtype); });
  uint64_t offset = 0;
  for (SafetensorsEntry& entry : header.entries) {
    entry.begin = offset;
    offset += tensors.at(entry.name).nbytes();
    entry.end = offset;
  }
  return header;
}

// An open file that is read with its name in every error.
class Input {
 public:
  explicit Input(const std::filesystem::path& file) : path_(file), place_(quoted(file)) {
    struct stat status {};
    // Non-blocking, for a path that turns out to be a pipe.
    descriptor_ = Descriptor(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!descriptor_.is_open() || ::fstat(descriptor_.get(), &status) != 0) throw file_error("read", file, errno);
    if (!S_ISREG(status.st_mode)) throw RunError(place_ + " is not a regular file");
    size_ = static_cast<uint64_t>(status.st_size);
  }

  uint64_t size() const { return size_; }
  const std::string& place() const { return place_; }

  void read(void* target, uint64_t size, uint64_t offset) const {
    char* next = static_cast<char*>(target);
    while (size > 0) {
      const ssize_t got = ::pread(descriptor_.get(), next, size, static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) throw file_error("read", path_, errno);
      if (got == 0) throw RunError(place_ + " became shorter while it was read");
      next += got;
      offset += static_cast<uint64_t>(got);
      size -= static_cast<uint64_t>(got);
    }
  }

 private:
  std::filesystem::path path_;
  std::string place_;
  Descriptor descriptor_;
  uint64_t size_ = 0;
};

struct LocatedHeader {
  SafetensorsHeader header;
  uint64_t data_start;
};

LocatedHeader read_header(const Input& input) {
  uint64_t length = 0;
  if (input.size() < sizeof length) {
    throw RunError(input.place() + " is not a safetensors file: it has " + std::to_string(input.size()) +
                   " bytes, fewer than the 8 of the header's length");
  }
  input.read(&length, sizeof length, 0);
  const uint64_t limit = std::min(kMaxSafetensorsHeader, input.size() - sizeof length);
  if (length > limit) {
    throw RunError(input.place() + " is not a safetensors file, or is cut off: its header would have " +
                   std::to_string(length) + " bytes, at most " + std::to_string(limit) + " are possible");
  }
  std::string json(length, '\0');
  input.read(json.data(), length, sizeof length);
  const uint64_t data_start = sizeof length + length;
  return {decode_safetensors_header(json, input.size() - data_start, input.place()), data_start};
}

at::Tensor read_tensor(const Input& input, const SafetensorsEntry& entry, uint64_t data_start) {
  at::Tensor tensor = at::empty(entry.shape, at::dtype(entry.dtype));
  input.read(tensor.mutable_data_ptr(), entry.size(), data_start + entry.begin);
  if (entry.dtype == at::kBool) {
    const auto* bytes = static_cast<const uint8_t*>(tensor.const_data_ptr());
    if (std::any_of(bytes, bytes + entry.size(), [](uint8_t byte) { return byte > 1; })) {
      throw RunError(input.place() + ": tensor '" + entry.name + "' is BOOL and holds bytes other than 0 and 1");
    }
  }
  return tensor;
}

}  // namespace

void write_safetensors(const std::filesystem::path& file, const TensorMap& tensors, const TextMap& metadata) {
  const SafetensorsHeader header = header_for(tensors, metadata, quoted(file));
  const std::string json = encode_safetensors_header(header);
  const uint64_t length = json.size();
  AtomicFile output(file);
  output.write(&length, sizeof length);
  output.write(json);
  for (const SafetensorsEntry& entry : header.entries) {
    const at::Tensor plain = tensors.at(entry.name).detach().to(at::kCPU).contiguous();
    output.write(plain.const_data_ptr(), entry.size());
  }
  output.commit();
}

Safetensors read_safetensors(const std::filesystem::path& file) {
  const Input input(file);
  LocatedHeader located = read_header(input);
  Safetensors result;
  result.metadata = std::move(located.header.metadata);
  for (const SafetensorsEntry& entry : located.header.entries) {
    result.tensors.emplace(entry.name, read_tensor(input, entry, located.data_start));
  }
  return result;
}

TextMap read_safetensors_metadata(const std::filesystem::path& file) {
  return read_header(Input(file)).header.metadata;
}

}  // namespace settrain
