#include "src/data_tools/curl.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "src/core/child_process.h"

namespace settrain {
namespace {

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

}  // namespace

bool CurlEnd::broke() const {
  constexpr std::array<int, 6> kBroken = {kPartialFile, kTimeOut, kNothing, kSendError, kReceiveError, kHttp2Error};
  return std::find(kBroken.begin(), kBroken.end(), code) != kBroken.end();
}

bool CurlEnd::unreachable() const {
  return code == kNoHost || code == kNoConnection || code == kTlsError;
}

bool CurlEnd::cannot_go_on() const {
  return code == kNoRanges || code == kBadResume || (code == kHttpError && printed.ends_with(" 416"));
}

std::string CurlEnd::message() const {
  return (printed.empty() ? fmt::format("curl failed with exit code {}", code) : printed) + reason_of(code);
}

CurlEnd run_curl(const std::string& url, const std::filesystem::path& part, const std::function<void()>& meanwhile,
                 int keep_open) {
  const ChildEnd end = run_child({{"curl", "--fail", "--location", "--silent", "--show-error",
                                   // A connection that gives nothing for a minute is dead.
                                   "--connect-timeout", "30", "--speed-limit", "1", "--speed-time", "60",
                                   "--continue-at", "-", "--output", part.string(), "--url", url},
                                  "curl",
                                  meanwhile,
                                  keep_open});
  return {end.code, end.printed};
}

}  // namespace settrain
