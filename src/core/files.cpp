#include "src/core/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "src/core/text.h"

namespace settrain {
namespace {

// `file`: a path that a user may have written for a shell.
std::string advice(int code, const std::filesystem::path& file) {
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
    case ENOENT:
      return shell_hint(file.native());
    default:
      return "";
  }
}

std::string temporary_name(const std::filesystem::path& file) {
  return fmt::format(".{}.tmp-{}", file.filename().string(), ::getpid());
}

Descriptor open_folder_of(const std::filesystem::path& file) {
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  Descriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.is_open()) throw file_error("write", file, errno);
  return opened;
}

void sync_folder_of(const std::filesystem::path& file, const Descriptor& folder) {
  // Some network file systems cannot sync a folder and say EINVAL; there is nothing better to do there.
  if (::fsync(folder.get()) != 0 && errno != EINVAL) throw file_error("sync the folder of", file, errno);
}

void copy_file_atomically(const std::filesystem::path& source, const std::filesystem::path& file) {
  std::ifstream input(source, std::ios::binary);
  if (!input) throw read_error("read", source, errno);
  AtomicFile output(file);
  std::vector<char> buffer(1 << 20);
  while (input) {
    input.read(buffer.data(), std::ssize(buffer));
    output.write(buffer.data(), static_cast<size_t>(input.gcount()));
  }
  if (input.bad()) throw RunError("cannot read '" + source.string() + "'");
  output.commit();
}

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
                  "': " + std::generic_category().message(code) + advice(code, file));
}

RunError read_error(std::string_view action, const std::filesystem::path& file, int code) {
  const std::string hint = code == ENOENT ? shell_hint(file.native()) : "";
  return RunError("cannot " + std::string(action) + " '" + file.string() +
                  "': " + std::generic_category().message(code) + hint);
}

AppendFile::AppendFile(std::filesystem::path file) : path_(std::move(file)) {
  file_ = Descriptor(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!file_.is_open()) throw file_error("open", path_, errno);
  const off_t end = ::lseek(file_.get(), 0, SEEK_END);
  if (end < 0) throw file_error("read the size of", path_, errno);
  size_ = static_cast<uint64_t>(end);
}

void AppendFile::append(std::string_view record) {
  if (!write_all(file_, record.data(), record.size())) {
    const int code = errno;
    // A full disk takes part of a record; giving back space does not fail.
    if (::ftruncate(file_.get(), static_cast<off_t>(size_)) != 0) throw file_error("cut back", path_, errno);
    throw file_error("write", path_, code);
  }
  size_ += record.size();
}

void AppendFile::sync() {
  if (::fsync(file_.get()) != 0) throw file_error("sync", path_, errno);
}

void AppendFile::truncate_to(uint64_t size) {
  if (size > size_) {
    throw RunError("'" + path_.string() + "' has " + std::to_string(size_) + " bytes, expected at least " +
                   std::to_string(size) + ": it was changed since");
  }
  if (::ftruncate(file_.get(), static_cast<off_t>(size)) != 0) throw file_error("cut back", path_, errno);
  size_ = size;
}

AtomicFile::AtomicFile(std::filesystem::path file)
    : file_(std::move(file)), temporary_(temporary_name(file_)), folder_(open_folder_of(file_)) {
  // A process that was killed may have left a temporary file, and had this process id. It is removed and not cut, since
  // it may be another name of a file that is needed (link_file_atomically).
  ::unlinkat(folder_.get(), temporary_.c_str(), 0);
  const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
  output_ = Descriptor(::openat(folder_.get(), temporary_.c_str(), flags, 0666));
  if (!output_.is_open()) throw file_error("write", file_, errno);
}

void AtomicFile::write(const void* data, size_t size) {
  check_open();
  if (!write_all(output_, data, size)) fail(errno);
}

void AtomicFile::commit() {
  check_open();
  // Without the first sync, a power cut after the rename could leave an empty file under the final name.
  if (::fsync(output_.get()) != 0) fail(errno);
  if (::renameat(folder_.get(), temporary_.c_str(), folder_.get(), file_.filename().c_str()) != 0) fail(errno);
  output_.close();
  sync_folder_of(file_, folder_);
}

void AtomicFile::discard() noexcept {
  if (!output_.is_open()) return;
  output_.close();
  ::unlinkat(folder_.get(), temporary_.c_str(), 0);
}

void AtomicFile::fail(int code) {
  discard();
  throw file_error("write", file_, code);
}

void AtomicFile::check_open() const {
  if (!output_.is_open())
    throw std::logic_error(fmt::format("'{}' was committed or had failed before", file_.string()));
}

void write_file_atomically(const std::filesystem::path& file, std::string_view contents) {
  AtomicFile output(file);
  output.write(contents);
  output.commit();
}

void link_file_atomically(const std::filesystem::path& source, const std::filesystem::path& file) {
  const Descriptor folder = open_folder_of(file);
  const std::string temporary = temporary_name(file);
  ::unlinkat(folder.get(), temporary.c_str(), 0);  // left by a killed process
  if (::linkat(AT_FDCWD, source.c_str(), folder.get(), temporary.c_str(), 0) != 0) {
    copy_file_atomically(source, file);  // where that is impossible too, it says why
    return;
  }
  const bool renamed = ::renameat(folder.get(), temporary.c_str(), folder.get(), file.filename().c_str()) == 0;
  const int code = errno;
  ::unlinkat(folder.get(), temporary.c_str(), 0);  // it stays where both were names of one file before
  if (!renamed) throw file_error("write", file, code);
  sync_folder_of(file, folder);
}

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
