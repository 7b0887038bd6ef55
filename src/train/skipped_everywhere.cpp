#include "src/train/skipped_everywhere.h"

#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace settrain {

void log_skipped_everywhere(const Experiment& run) {
  if (run.group->world_size() == 1) return;
  const nlohmann::json unreported = run.loader.skipped->take_unreported();
  for (const std::string& of_one :
       run.group->all_gather(unreported.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace))) {
    if (!run.group->is_first()) continue;
    const nlohmann::json reasons = nlohmann::json::parse(of_one);
    for (const auto& [image, reason] : reasons.items()) {
      run.loader.skipped->add(image, reason.get<std::string>());
    }
  }
}

}  // namespace settrain
