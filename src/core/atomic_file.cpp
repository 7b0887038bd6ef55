#include "src/core/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <stdexcept>
#include <utility>
#include <vector>

namespace settrain {
namespace {

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
  if (!input) throw file_error("read", source, errno);
  AtomicFile output(file);
  std::vector<char> buffer(1 << 20);
  while (input) {
    input.read(buffer.data(), std::ssize(buffer));
    output.write(buffer.data(), static_cast<size_t>(input.gcount()));
  }
  if (input.bad()) throw RunError("cannot read '" + source.string() + "'");
  output.commit();
}

}  // namespace

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

}  // namespace settrain
