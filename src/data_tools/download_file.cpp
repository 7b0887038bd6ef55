#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "datasets/file_bytes.h"
#include "src/core/child_process.h"
#include "src/core/digest.h"
#include "src/core/error.h"
#include "src/core/interrupt.h"
#include "src/core/log.h"
#include "src/core/progress_bar.h"
#include "src/core/text.h"
#include "src/data_tools/fetch.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;

enum CurlCode {
  kNoHost = 6,
  kNoConnection = 7,
  kPartialFile = 18,
  kHttpError = 22,
  kWriteError = 23,
  kTimeOut = 28,
  kNoRanges = 33,
  kTlsError = 35,
  kBadResume = 36,
  kCannotReadFile = 37,
  kNothing = 52,
  kSendError = 55,
  kReceiveError = 56,
  kBadCertificate = 60,
  kHttp2Error = 92
};

const char* reason_of(int code) {
  switch (code) {
    case kNoHost:
      return "; is this machine connected, and is the host's name right?";
    case kNoConnection:
      return "; the host does not answer";
    case kHttpError:
      return "; the file is no longer there, or the host refuses for now";
    case kWriteError:
      return "; is the disk full?";
    case kTlsError:
    case kBadCertificate:
      return "; a proxy may stand between, or the package ca-certificates be missing";
    case kCannotReadFile:
      return "; there is no such file, or it may not be read";
    default:
      return "";
  }
}

// How curl ended (curl.1, EXIT CODES).
struct CurlEnd : ChildEnd {
  bool done() const { return code == 0; }
  // The connection broke while bytes arrived; another try may help.
  bool broke() const {
    constexpr std::array<int, 6> kBroken = {kPartialFile, kTimeOut, kNothing, kSendError, kReceiveError, kHttp2Error};
    return std::find(kBroken.begin(), kBroken.end(), code) != kBroken.end();
  }
  // No host, or no answer: a wrong address, or no network.
  bool unreachable() const { return code == kNoHost || code == kNoConnection || code == kTlsError; }
  // The server cannot resume: it does not support ranges, or has nothing after the bytes that are here.
  bool cannot_go_on() const {
    return code == kNoRanges || code == kBadResume || (code == kHttpError && printed.ends_with(" 416"));
  }
  // The text that curl printed, and the likely reason.
  std::string message() const {
    return (printed.empty() ? fmt::format("curl failed with exit code {}", code) : printed) + reason_of(code);
  }
};

// The file's checksum, of the same kind as the known one. `progress` is called with the number of bytes read so far,
// about every 4 MiB, and may throw. Throws DataError where the file cannot be read.
Checksum checksum_of_file(const fs::path& file, const Checksum& known, const std::function<void(uint64_t)>& progress) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw data_file_error("open", file);
  Digest digest = known.kind == Checksum::Kind::kMd5 ? Digest(Md5()) : Digest(Sha256());
  std::vector<char> buffer(4 << 20);
  uint64_t done = 0;
  while (stream) {
    stream.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    const auto size = static_cast<size_t>(stream.gcount());
    digest.add(std::string_view(buffer.data(), size));
    progress(done += size);
  }
  if (stream.bad()) throw data_file_error("read", file);
  return {known.kind, digest.hex()};
}

constexpr int kMostFailures = 3;  // in a row, without a byte

// Bytes of the file; 0 where there is none.
uint64_t size_of(const fs::path& file) {
  std::error_code missing;
  const auto size = fs::file_size(file, missing);
  return missing ? 0 : size;
}

class FileDownload {
 public:
  FileDownload(const RemoteFile& file, const fs::path& folder, const FileLock& lock)
      : file_(file), lock_(lock), whole_(folder / file.name), part_(fs::path(whole_).concat(".part")) {}

  fs::path run() {
    if (fs::exists(whole_)) {
      check_existing_file();
      return whole_;
    }
    if (file_.size > 0 && size_of(part_) > file_.size) start_over("is longer than the file");
    if (file_.size == 0 || size_of(part_) < file_.size) {
      check_room();
      get_part();
    }
    if (const std::string wrong = difference(part_); !wrong.empty()) {
      const fs::path aside = fs::path(whole_).concat(".wrong");
      fs::rename(part_, aside);
      fail(fmt::format("what came {}; it is now '{}', which may be removed", wrong, aside.string()));
    }
    fs::rename(part_, whole_);
    return whole_;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw DataError(fmt::format("{}: {}\nBy hand: get {} and put it at '{}', then run this again", file_.url, what,
                                file_.url, fs::absolute(whole_).string()));
  }

  void check_existing_file() const {
    log::info(fmt::format("[fetch] '{}' is there already", whole_.string()));
    const std::string wrong = difference(whole_);
    if (wrong.empty()) return;
    throw DataError(
        fmt::format("'{}' {}. Move it away to download it anew from {}", whole_.string(), wrong, file_.url));
  }

  void start_over(const char* why) const {
    log::warning(fmt::format("[fetch] '{}' {}: starting from the beginning", part_.string(), why));
    fs::remove(part_);
  }

  void check_room() const {
    const fs::path folder = whole_.parent_path();
    const uint64_t free = fs::space(folder).available;
    const uint64_t missing = file_.size - std::min(file_.size, size_of(part_));
    if (free >= missing) return;
    fail(fmt::format("{} are missing, but '{}' has room for {} only; free some, or choose another folder (--to)",
                     format_bytes(missing), folder.string(), format_bytes(free)));
  }

  void get_part() const {
    if (size_of(part_) > 0) {
      log::info(fmt::format("[fetch] going on after {} of '{}'", format_bytes(size_of(part_)), part_.string()));
    }
    bool came = false, restarted = false;
    for (int failures = 0;;) {
      const uint64_t before = size_of(part_);
      const CurlEnd end = curl();
      if (end.done()) return;
      const bool grew = size_of(part_) > before;
      came = came || grew;
      if (before > 0 && !restarted && end.cannot_go_on()) {
        if (file_.checksum.known() && difference(part_).empty()) return;  // nothing was missing
        start_over("cannot be gone on with");
        restarted = true;
        continue;
      }
      failures = grew ? 0 : failures + 1;
      // A host that is not found at first is a mistake; later it is a network that went away.
      const bool may_pass = end.broke() || (came && end.unreachable());
      if (!may_pass || failures >= kMostFailures) fail(end.message());
      log::warning(fmt::format("[fetch] {}; trying again after {}", end.printed, format_bytes(size_of(part_))));
      wait(failures + 1);
    }
  }

  // Downloads to `part_`, after the bytes that it holds.
  CurlEnd curl() const {
    try {
      ProgressBar bar;
      const auto meanwhile = [&] {
        throw_if_interrupted();
        bar.update(progress("", size_of(part_)));
      };
      // A connection that gives nothing for a minute is dead.
      const ChildEnd end = run_child(
          {{"curl", "--fail", "--location", "--silent", "--show-error", "--connect-timeout", "30", "--speed-limit", "1",
            "--speed-time", "60", "--continue-at", "-", "--output", part_.string(), "--url", file_.url},
           "curl",
           meanwhile,
           lock_.descriptor()});
      throw_if_interrupted();  // Ctrl-C reaches curl too
      return {end};
    } catch (const Interrupted&) {
      if (size_of(part_) > 0) {
        log::info(fmt::format("[fetch] stopped; '{}' keeps {}: run this again to go on", part_.string(),
                              format_bytes(size_of(part_))));
      }
      throw;
    } catch (const Error& problem) {
      fail(problem.what());
    }
  }

  static void wait(int seconds) {
    for (int tenth = 0; tenth < 10 * seconds; ++tenth) {
      throw_if_interrupted();
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }

  Progress progress(const char* work, uint64_t done) const {
    const uint64_t total = std::max(file_.size, done);
    return {fmt::format("[fetch] {}{}", work, file_.name),
            static_cast<int64_t>(done),
            static_cast<int64_t>(total),
            0,
            format_bytes(done),
            true};
  }

  // A message that says what is wrong with the file, or an empty text.
  std::string difference(const fs::path& path) const {
    const uint64_t size = size_of(path);
    if (file_.size > 0 && size != file_.size) {
      return fmt::format("has {} bytes, expected {}", format_count(static_cast<int64_t>(size)),
                         format_count(static_cast<int64_t>(file_.size)));
    }
    if (!file_.checksum.known()) {
      log::warning(fmt::format("[fetch] no checksum of {} is known, so {} was checked", file_.name,
                               file_.size > 0 ? "only its size" : "nothing"));
      return {};
    }
    ProgressBar bar;
    const Checksum got = checksum_of_file(path, file_.checksum, [&](uint64_t done) {
      throw_if_interrupted();
      bar.update(progress("checking ", done));
    });
    if (got.hex.starts_with(file_.checksum.hex)) return {};
    return fmt::format("has {}, expected {}", checksum_text(got), checksum_text(file_.checksum));
  }

  const RemoteFile& file_;
  const FileLock& lock_;
  fs::path whole_, part_;
};

}  // namespace

std::string checksum_text(const Checksum& checksum) {
  if (!checksum.known()) return "none";
  return (checksum.kind == Checksum::Kind::kMd5 ? "MD5 " : "SHA-256 ") + checksum.hex;
}

fs::path download_file(const RemoteFile& file, const fs::path& folder, const FileLock& lock) {
  return FileDownload(file, folder, lock).run();
}

}  // namespace settrain
