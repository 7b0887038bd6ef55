#include "src/loader/skipped_images.h"

#include <utility>

#include "src/core/log.h"

namespace settrain {

void SkippedImages::add(const std::string& image, const std::string& reason) {
  {
    const std::lock_guard lock(mutex_);
    if (!images_.insert(image).second) return;
    if (!logs_) untold_.emplace(image, reason);
  }
  if (logs_) log::warning("[data] left out: " + reason);
}

std::map<std::string, std::string> SkippedImages::take_untold() {
  const std::lock_guard lock(mutex_);
  return std::exchange(untold_, {});
}

int64_t SkippedImages::count() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(images_.size());
}

}  // namespace settrain
