#include "src/train/row_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <system_error>
#include <utility>

#include "src/core/error.h"
#include "src/core/log.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;

// Tells the starts of the machine apart.
std::string boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

std::string padded(std::string text) {
  text.resize(RowFile::kHeaderBytes, '\0');
  return text;
}

std::string head_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::string head(RowFile::kHeaderBytes, '\0');
  stream.read(head.data(), RowFile::kHeaderBytes);
  return stream ? head : "";
}

}  // namespace

RowFile::RowFile(fs::path path, int64_t rows, int64_t width, FeatureTable::Stored stored)
    : path_(std::move(path)),
      partial_(path_.string() + ".partial"),
      rows_(rows),
      row_bytes_(width * FeatureTable::bytes_of(stored)),
      type_(stored == FeatureTable::Stored::kFloat32 ? at::kFloat : at::kBFloat16) {
  const std::string text = fmt::format("settrain features 2\n{}\n{} {}\n", path_.filename().string(), rows, width);
  header_ = padded(text);
  partial_header_ = padded(text + boot_id() + "\n");
}

bool RowFile::is_whole() const {
  std::error_code missing;
  const auto bytes = fs::file_size(path_, missing);
  return !missing && bytes == static_cast<uintmax_t>(size_of(rows_)) && head_of(path_) == header_;
}

std::optional<int64_t> RowFile::open(int64_t batch) {
  std::error_code failed;
  fs::create_directories(path_.parent_path(), failed);
  if (failed) fail("make the folder of", failed.value());
  if (is_whole()) return rows_;
  file_ = Descriptor(::open(partial_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!file_.is_open()) fail("open", errno);
  if (flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) fail("lock", errno);
    return std::nullopt;
  }
  if (!is_same_file()) return std::nullopt;  // the one before us has just renamed it
  if (!is_whole()) return begin(batch);
  fs::remove(partial_, failed);
  file_.close();
  return rows_;
}

void RowFile::append(const at::Tensor& values) {
  const at::Tensor rows = values.to(type_).contiguous();
  if (!write_all(file_, rows.const_data_ptr(), rows.nbytes())) {
    const int code = errno;
    cut_to(size_of(written_));
    fail("write", code);
  }
  written_ += rows.size(0);
}

void RowFile::finish() {
  if (pwrite(file_.get(), header_.data(), header_.size(), 0) != static_cast<ssize_t>(header_.size()))
    fail("write", errno);
  if (fsync(file_.get()) != 0) fail("sync", errno);
  std::error_code failed;
  fs::rename(partial_, path_, failed);
  if (failed) fail("rename", failed.value());
  file_.close();
}

// With the lock held: the rows that are there.
int64_t RowFile::begin(int64_t batch) {
  std::error_code missing;
  if (fs::exists(path_, missing)) {
    log::warning(fmt::format("[features] '{}' is damaged, or of an earlier version, and is made anew", path_.string()));
    fs::remove(path_, missing);
  }
  int64_t rows = 0;
  const int64_t bytes = lseek(file_.get(), 0, SEEK_END);
  if (bytes >= kHeaderBytes && head_of(partial_) == partial_header_) {
    rows = std::min(rows_, (bytes - kHeaderBytes) / row_bytes_);
    if (rows < rows_) rows = rows / batch * batch;
    cut_to(size_of(rows));
  } else {
    cut_to(0);
    if (!write_all(file_, partial_header_.data(), partial_header_.size())) fail("write", errno);
  }
  return written_ = rows;
}

bool RowFile::is_same_file() const {
  struct stat ours {
  }, there{};
  return fstat(file_.get(), &ours) == 0 && stat(partial_.c_str(), &there) == 0 && ours.st_ino == there.st_ino &&
         ours.st_dev == there.st_dev;
}

void RowFile::cut_to(int64_t size) {
  if (ftruncate(file_.get(), size) != 0 || lseek(file_.get(), size, SEEK_SET) != size) fail("cut", errno);
}

void RowFile::fail(const char* action, int code) const {
  throw RunError(fmt::format("{}; or train without the file: --set {}=off, with --allow {} where a run goes on",
                             file_error(action, partial_, code).what(), kCacheFeatures, kCacheFeatures));
}

}  // namespace settrain
