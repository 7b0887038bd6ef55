// The program curl, and what its exit codes mean.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace settrain {

/// How it ended (curl.1, EXIT CODES).
struct CurlEnd {
  int code = 0;
  std::string printed;

  bool done() const { return code == 0; }
  /// The connection broke on the way; trying again may help.
  bool broke() const;
  /// No host, or no answer: a wrong address, or no network.
  bool unreachable() const;
  /// The server has no rest to give: it knows no ranges, or has nothing after what is here.
  bool cannot_go_on() const;
  /// What it printed, and what may be the reason.
  std::string message() const;
};

/// Downloads `url` to `part`, going on after what `part` holds. `meanwhile` and `keep_open`: see child_process.h, as
/// are the errors.
CurlEnd run_curl(const std::string& url, const std::filesystem::path& part, const std::function<void()>& meanwhile,
                 int keep_open);

}  // namespace settrain
