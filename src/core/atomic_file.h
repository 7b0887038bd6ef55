// Files that are there whole or not at all, whatever happens while they are written.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "src/core/descriptor.h"

namespace settrain {

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

}  // namespace settrain
