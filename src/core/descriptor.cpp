#include "src/core/descriptor.h"

#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

namespace settrain {
namespace {

const char* advice(int code) {
  switch (code) {
    case ENOSPC:
    case EDQUOT:
      return "; free some space, or choose another folder";
    case EFBIG:
      return "; raise the limit on the size of files (ulimit -f), or choose another folder";
    case EACCES:
    case EPERM:
    case EROFS:
      return "; choose a folder that this user may write to";
    default:
      return "";
  }
}

}  // namespace

void Descriptor::close() {
  if (is_open()) ::close(std::exchange(value_, -1));
}

bool write_all(const Descriptor& file, const void* data, size_t size) {
  const char* next = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = ::write(file.get(), next, size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    next += written;
    size -= static_cast<size_t>(written);
  }
  return true;
}

RunError file_error(std::string_view action, const std::filesystem::path& file, int code) {
  return RunError("cannot " + std::string(action) + " '" + file.string() +
                  "': " + std::generic_category().message(code) + advice(code));
}

}  // namespace settrain
