#include "src/loader/skipped_images.h"

#include "src/core/log.h"

namespace settrain {

void SkippedImages::add(const std::string& image, const std::string& reason) {
  {
    const std::lock_guard lock(mutex_);
    if (!images_.insert(image).second) return;
  }
  if (logs_) log::warning("[data] left out: " + reason);
}

int64_t SkippedImages::count() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(images_.size());
}

}  // namespace settrain
