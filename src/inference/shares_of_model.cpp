#include "src/inference/shares_of_model.h"

#include <fmt/ranges.h>

#include <cmath>

#include "losses/make_loss.h"
#include "src/core/error.h"
#include "src/loader/sampler.h"

namespace settrain {

std::vector<double> shares_of_model(const Experiment& run, const LossRegistry& losses) {
  const auto& name = run.config.get<std::string>("loss.name");
  const LossEntry& loss = losses.at(name);
  const auto refuse = [&](const std::string& why) {
    throw ConfigError(fmt::format(
        "scores cannot be corrected to the shares of a place: {}; `settrain predict --prior FILE` weighs the calibration "
        "images all the same",
        why));
  };
  if (!loss.prior_tau) {
    std::vector<std::string> able;
    for (const LossEntry& entry : losses.entries()) {
      if (entry.prior_tau) able.push_back(entry.name);
    }
    refuse(fmt::format("the loss {} estimates no probabilities of classes with known shares, as {} do", name,
                       fmt::join(able, ", ")));
  }
  const std::optional<double> tau = loss.prior_tau(run.config);
  if (!tau) refuse(fmt::format("the loss {} changes by epoch", name));
  if (run.config.read<ClassWeightOptions>("loss").kind != ClassWeightOptions::kNone)
    refuse("class weights (loss.class_weights) change the shares that the loss sees");

  constexpr double kHalf = 0.5;
  const Sampling sampling = run.loader.sampling();
  const std::vector<double> draws = class_probabilities(sampling, run.train_counts, sampling.epochs - 1);
  double images = 0;
  for (const int64_t count : run.train_counts) images += std::max(kHalf, static_cast<double>(count));
  std::vector<double> shares;
  for (size_t c = 0; c < draws.size(); ++c) {
    const double share = std::max(kHalf, static_cast<double>(run.train_counts[c])) / images;
    shares.push_back((draws[c] > 0 ? draws[c] : share) / std::pow(share, *tau));
  }
  return shares;
}

}  // namespace settrain
