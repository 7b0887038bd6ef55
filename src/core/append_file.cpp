#include "src/core/append_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

namespace settrain {

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

}  // namespace settrain
