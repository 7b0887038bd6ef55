#include "src/train/same_everywhere.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "src/config/differences.h"
#include "src/core/error.h"
#include "src/train/checkpoint.h"
#include "src/train/resume.h"

namespace settrain {
namespace {

// The config is compared key by key; the card repeats parts of it, and GPUs may differ in their drivers' memory.
bool is_compared(const std::string& name) {
  return name != "config" && name != "card" && name != "machine.gpu";
}

// Keys that a process may have for itself. Others that change no number change which collective calls are made. The
// data are compared by their digest, threads by their number.
bool is_own(const std::string& path) {
  static const std::set<std::string> kOwn{"name",           "run.dir",         "run.threads",
                                          "data.root",      "data.workers",    "data.prefetch",
                                          "data.on_device", "data.val_labels", "data.synsets"};
  return kOwn.contains(path) || path.starts_with("train.checkpoint_every.");
}

std::string differing(const nlohmann::json& first, const nlohmann::json& other) {
  std::string lines;
  for (const auto& [path, before, after] : config::differences(first.at("config"), other.at("config"))) {
    if (is_own(path)) continue;
    lines += fmt::format("\n    {}: {} instead of {}", path, after, before);
  }
  for (const auto& [name, value] : first.items()) {
    if (!is_compared(name)) continue;
    const auto before = value.get<std::string>();
    if (other.value(name, "") != before)
      lines += fmt::format("\n    {}: {} instead of {}", name, other.value(name, "none"), before);
  }
  return lines;
}

}  // namespace

void check_same_everywhere(const Experiment& run) {
  Checkpoint mine;
  add_identity(run, mine);
  const std::vector<std::string> all = run.group->all_gather(nlohmann::json(mine.metadata).dump());
  const nlohmann::json first = nlohmann::json::parse(all.front());
  std::string lines;
  for (size_t rank = 1; rank < all.size(); ++rank) {
    const std::string other = differing(first, nlohmann::json::parse(all[rank]));
    if (!other.empty()) lines += fmt::format("\n  process {} of {}:{}", rank, all.size(), other);
  }
  if (!lines.empty()) throw AgreedError("the processes would not train the same; compared with process 0:" + lines);
}

}  // namespace settrain
