#include "src/inference/guarantee.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <vector>

#include "src/core/error.h"
#include "src/train/evaluation.h"
#include "src/train/selection.h"

namespace settrain {
namespace {

// The splits whose images chose epochs of the run until that checkpoint, each with a metric that they did it by.
std::map<std::string, std::string> splits_that_chose(const Experiment& run, const Checkpoint& weights) {
  const std::string prefix = selection_tensor("");
  std::map<std::string, std::string> chose;
  for (const auto& [name, tensor] : weights.tensors) {
    if (!name.starts_with(prefix)) continue;
    const std::string metric = name.substr(prefix.size());
    for (const std::string& split : splits_behind(metric, run.config, run.dataset.calibration.size() > 0)) {
      chose.emplace(split, metric);
    }
  }
  return chose;
}

}  // namespace

std::string calibration_split(const Dataset& dataset) {
  if (dataset.calibration.size() > 0) return "calibration";
  if (dataset.val.size() > 0) return "val";
  throw ConfigError("the run has no validation images to calibrate rules on; settrain calibrate --scores takes others");
}

std::string why_no_guarantee(const Experiment& run, const Checkpoint& weights, const std::string& split,
                             bool with_test) {
  if (split == "train") return "the model was trained on these images";
  const std::map<std::string, std::string> chose = splits_that_chose(run, weights);
  std::vector<std::string> reasons;
  if (split == "val") {
    reasons.emplace_back("these validation images may have chosen the epoch or a setting");
  } else if (const auto found = chose.find(split); found != chose.end()) {
    reasons.push_back(
        fmt::format("`select` has {}, so these {} images may have chosen the epoch", found->second, split));
  }
  const auto is_other = [&](const auto& changed) {
    return (changed.first == split && !changed.second) || changed.first.empty();
  };
  if (split == "calibration" && std::ranges::any_of(run.changed_splits, is_other)) {
    reasons.emplace_back(
        "these are not the images that the run kept apart, so some may have chosen the epoch or a setting");
  }
  for (const SharedImages& shared : run.dataset.shared_images) {
    if (shared.split != split && shared.other != split) continue;
    const std::string& beside = shared.split == split ? shared.other : shared.split;
    const bool has_chosen = chose.contains(beside);
    if (beside == "train" || beside == "val" || has_chosen || (beside == "test" && with_test))
      reasons.push_back(shared.count_text());
  }
  return fmt::format("{}", fmt::join(reasons, "; "));
}

}  // namespace settrain
