#include "src/core/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <sstream>
#include <string>

namespace settrain {
namespace {

// "process 123 on host", or "another process" in the moment before the holder has written its name.
std::string holder_of(const Descriptor& file) {
  std::array<char, 512> buffer;
  const ssize_t size = ::pread(file.get(), buffer.data(), buffer.size(), 0);
  std::istringstream text(std::string(buffer.data(), size > 0 ? static_cast<size_t>(size) : 0));
  std::string pid, host;
  if (!(text >> pid >> host)) return "another process";
  return "process " + pid + " on " + host;
}

}  // namespace

FileLock::FileLock(const std::filesystem::path& file)
    : file_(::open(file.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666)) {
  if (!file_.is_open()) throw file_error("open", file, errno);
  if (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) throw file_error("lock", file, errno);
    throw RunError("'" + file.parent_path().string() + "' is being written by " + holder_of(file_) +
                   ": wait for it to end, or choose another folder");
  }
  const std::string holder = std::to_string(::getpid()) + " " + host_name() + "\n";
  if (::ftruncate(file_.get(), 0) != 0 || !write_all(file_, holder.data(), holder.size())) {
    throw file_error("write", file, errno);
  }
}

std::string host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "unknown-host";
  return name.data();
}

}  // namespace settrain
