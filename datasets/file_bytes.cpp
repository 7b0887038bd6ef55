#include "datasets/file_bytes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "src/core/files.h"

namespace settrain {

DataError data_file_error(std::string_view action, const std::filesystem::path& file) {
  return DataError(read_error(action, file, errno).what());
}

std::span<const uint8_t> read_file_bytes(const std::filesystem::path& file, std::vector<uint8_t>& memory) {
  // O_NONBLOCK: opening a named pipe would wait for a writer.
  const Descriptor descriptor(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!descriptor.is_open()) throw data_file_error("open", file);
  struct stat status {};
  if (::fstat(descriptor.get(), &status) != 0) throw data_file_error("read", file);
  if (!S_ISREG(status.st_mode)) throw DataError("'" + file.string() + "' is no regular file");
  const auto size = static_cast<size_t>(std::max<off_t>(0, status.st_size));
  if (memory.size() < size) memory.resize(size);
  size_t filled = 0;
  while (filled < size) {
    const ssize_t got = ::read(descriptor.get(), memory.data() + filled, size - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw data_file_error("read", file);
    if (got == 0) break;  // the file became shorter meanwhile
    filled += static_cast<size_t>(got);
  }
  return {memory.data(), filled};
}

}  // namespace settrain
