#include "src/formats/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "src/core/error.h"

namespace settrain {

InputFile::InputFile(const std::filesystem::path& path) : path_(path), place_("'" + path.string() + "'") {
  struct stat status {};
  // Non-blocking, for a path that turns out to be a pipe.
  descriptor_ = Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!descriptor_.is_open() || ::fstat(descriptor_.get(), &status) != 0) throw read_error("read", path, errno);
  if (!S_ISREG(status.st_mode)) throw RunError(place_ + " is not a regular file");
  size_ = static_cast<uint64_t>(status.st_size);
}

void InputFile::read(void* target, uint64_t size, uint64_t offset) const {
  if (offset > size_ || size > size_ - offset) {
    fail("it is cut short: " + std::to_string(size) + " bytes at byte " + std::to_string(offset) +
         " were expected, of " + std::to_string(size_) + " in all");
  }
  char* next = static_cast<char*>(target);
  while (size > 0) {
    const ssize_t got = ::pread(descriptor_.get(), next, size, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw read_error("read", path_, errno);
    if (got == 0) throw RunError(place_ + " became shorter while it was read");
    next += got;
    offset += static_cast<uint64_t>(got);
    size -= static_cast<uint64_t>(got);
  }
}

void InputFile::fail(const std::string& what) const {
  throw RunError(place_ + ": " + what);
}

}  // namespace settrain
