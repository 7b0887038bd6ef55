// The images that could not be read and were left out: data.on_bad_image.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>

namespace settrain {

/// Of a whole run, all its loaders together. Thread-safe.
class SkippedImages {
 public:
  /// `logs`: where false, add() says nothing, and keeps the reasons for take_untold().
  explicit SkippedImages(bool logs = true) : logs_(logs) {}

  /// Logs `reason` as a warning, once for every image, which `image` names.
  void add(const std::string& image, const std::string& reason);

  /// Images with their reasons that were added since the last call, and not logged.
  std::map<std::string, std::string> take_untold();

  /// Different images so far.
  int64_t count() const;

 private:
  bool logs_;
  mutable std::mutex mutex_;
  std::set<std::string> images_;
  std::map<std::string, std::string> untold_;  // reasons by image
};

}  // namespace settrain
