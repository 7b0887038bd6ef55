// The images that could not be read and were left out: data.on_bad_image.
#pragma once

#include <cstdint>
#include <mutex>
#include <set>
#include <string>

namespace settrain {

/// Of a whole run, all its loaders together. Thread-safe.
class SkippedImages {
 public:
  /// `logs`: where false, add() says nothing.
  explicit SkippedImages(bool logs = true) : logs_(logs) {}

  /// Logs `reason` as a warning, once for every image, which `image` names.
  void add(const std::string& image, const std::string& reason);

  /// Different images so far.
  int64_t count() const;

 private:
  bool logs_;
  mutable std::mutex mutex_;
  std::set<std::string> images_;
};

}  // namespace settrain
