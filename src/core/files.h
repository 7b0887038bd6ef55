// Files that are written safely: descriptors that close themselves, files that only grow, files that are there whole or
// not at all, and locks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "src/core/error.h"

namespace settrain {

/// "cannot write 'FILE': No space left on device; free some space ...", for an errno `code` of a file to write;
/// `action` is "write", "open", ...
RunError file_error(std::string_view action, const std::filesystem::path& file, int code);
/// The same for a file that is there to be read, without advice about writing.
RunError read_error(std::string_view action, const std::filesystem::path& file, int code);

/// Owns a file descriptor, and closes it when it goes out of scope; -1 stands for none.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int value) : value_(value) {}
  Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~Descriptor() { close(); }

  int get() const { return value_; }
  bool is_open() const { return value_ >= 0; }
  void close();

 private:
  int value_ = -1;
};

/// Writes all of `size` bytes, however many calls that takes. False, with errno set, where the system refuses.
bool write_all(const Descriptor& file, const void* data, size_t size);

/// A file that is written at its end. Throws RunError, naming the file, where the system refuses.
class AppendFile {
 public:
  /// Opens `file`, making it where it is missing.
  explicit AppendFile(std::filesystem::path file);

  /// Adds `record` whole or, where that fails, not at all; nothing stays in a buffer of this process.
  void append(std::string_view record);

  /// Waits until all is on the disk.
  void sync();

  /// Size of the file in bytes.
  uint64_t size() const { return size_; }

  /// Cuts the file back. Throws RunError where it is shorter than that.
  void truncate_to(uint64_t size);

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  Descriptor file_;
  uint64_t size_ = 0;
};

/// Collects the bytes in `.NAME.tmp-PID` beside `file`; commit() syncs them to the disk and renames. Until then, and
/// after any failure, what was at `file` before stays as it is, and no temporary file is left. Every failure (full
/// disk, read-only folder, ...) throws RunError with the file's name and the system's reason.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path file);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile() { discard(); }

  void write(const void* data, size_t size);
  void write(std::string_view text) { write(text.data(), text.size()); }

  /// To be called once, at the end; write() and commit() after it, or after a failure, throw std::logic_error.
  void commit();

 private:
  void discard() noexcept;
  [[noreturn]] void fail(int code);
  void check_open() const;

  std::filesystem::path file_;
  std::string temporary_;  // name in `folder_`
  Descriptor folder_, output_;
};

/// Replaces `file` by one that holds `contents`.
void write_file_atomically(const std::filesystem::path& file, std::string_view contents);

/// Makes `file` another name (a hard link) of `source`, which is on the disk already and will be replaced, never
/// written to; a copy where the file system has no such links. What was at `file` stays until then. Throws RunError as
/// AtomicFile, and where `source` cannot be read.
void link_file_atomically(const std::filesystem::path& source, const std::filesystem::path& file);

/// Holds an exclusive lock on `file` (made where it is missing, and left behind) for as long as the object lives; the
/// system releases it when the process dies, however it dies. The file holds the owner's process id and host.
///
/// Throws RunError naming the holder's process id and host where another process, or another lock of this one, holds
/// it.
class FileLock {
 public:
  explicit FileLock(const std::filesystem::path& file);

  /// For a program that is to hold the lock too, until it ends: see child_process.h.
  int descriptor() const { return file_.get(); }

 private:
  Descriptor file_;
};

/// The name of this machine.
std::string host_name();

}  // namespace settrain
