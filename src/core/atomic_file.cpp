#include "src/core/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>
#include <utility>

namespace settrain {

AtomicFile::AtomicFile(std::filesystem::path file) : file_(std::move(file)) {
  const std::filesystem::path folder = file_.has_parent_path() ? file_.parent_path() : ".";
  temporary_ = fmt::format(".{}.tmp-{}", file_.filename().string(), ::getpid());
  folder_ = Descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder_.is_open()) throw file_error("write", file_, errno);
  // O_TRUNC and not O_EXCL: a process that was killed may have left a temporary file, and had this process id.
  const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC;
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
  // Some network file systems cannot sync a folder and say EINVAL; there is nothing better to do there.
  if (::fsync(folder_.get()) != 0 && errno != EINVAL) throw file_error("sync the folder of", file_, errno);
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

}  // namespace settrain
