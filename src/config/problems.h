// Everything that is wrong with a configuration, gathered so that it is reported at once.
#pragma once

#include <string>
#include <vector>

#include "src/config/config.h"
#include "src/core/error.h"

namespace settrain::config {

/// A ConfigError that still knows its place; thrown by Config::fail.
class PlacedError : public ConfigError {
 public:
  /// "file.yaml:3:7: loss.k: `message`".
  PlacedError(const Origin& origin, const std::string& path, const std::string& message);

  const Origin& origin() const { return origin_; }

 private:
  Origin origin_;
};

class Problems {
 public:
  /// `path` may be empty: the problem is the file's or the override's.
  void add(const Origin& origin, const std::string& path, const std::string& message);
  void add(const Origin& origin, const std::string& line) { problems_.push_back({origin, line}); }

  bool empty() const { return problems_.empty(); }

  /// Throws ConfigError, unless there are none: the line of the only one, or "3 problems in the configuration:" and a
  /// line each, in the order of the places.
  void throw_if_any() const;

 private:
  struct Problem {
    Origin origin;
    std::string line;
  };
  std::vector<Problem> problems_;
};

}  // namespace settrain::config
