#include "losses/make_loss.h"

#include <fmt/format.h>

#include "src/config/schema.h"
#include "src/core/error.h"

namespace settrain {

config::Section loss_section(const LossRegistry& registry) {
  return {"loss", "The training loss.", ClassWeightOptions::keys(),
          "name", "cross_entropy",      config::variants_of(registry)};
}

std::vector<std::string> losses_with(const LossRegistry& registry, bool LossEntry::*trait) {
  std::vector<std::string> names;
  for (const LossEntry& entry : registry.entries()) {
    if (entry.*trait) names.push_back(entry.name);
  }
  return names;
}

void check_class_weights(const LossRegistry& registry, const config::Config& config) {
  const auto kind = config.read<ClassWeightOptions>("loss").kind;
  const auto read_only = [&](const char* path, bool is_read, const char* condition) {
    config.refuse_unread(
        path, is_read,
        fmt::format("{}, and loss.class_weights is {}", condition, config.get<std::string>("loss.class_weights")));
  };
  read_only("loss.class_weight_list", kind == ClassWeightOptions::kList, "loss.class_weights: list");
  read_only("loss.class_weight_beta", kind == ClassWeightOptions::kEffectiveNumber,
            "loss.class_weights: effective_number");
  read_only("loss.class_weights_from_epoch", kind != ClassWeightOptions::kNone, "class weights");
  read_only("loss.class_weight_mean", kind != ClassWeightOptions::kNone, "class weights");
  if (kind == ClassWeightOptions::kNone) return;
  const LossEntry& entry = registry.at(config.get<std::string>("loss.name"));
  if (!entry.couples_samples && !entry.takes_label_sets) return;
  config.fail("loss.class_weights",
              fmt::format("the loss {} {}; expected none", entry.name,
                          entry.couples_samples ? "couples the samples of a batch, so none has a loss to be weighted"
                                                : "is one of label sets, which have no one class to weight them by"));
}

std::unique_ptr<Loss> make_loss(const LossRegistry& registry, const config::Config& config,
                                const LossContext& context) {
  check_class_weights(registry, config);
  const LossEntry& entry = registry.at(config.get<std::string>("loss.name"));
  const bool weighted = config.read<ClassWeightOptions>("loss").kind != ClassWeightOptions::kNone;
  const auto counts = static_cast<int64_t>(context.class_counts.size());
  if ((entry.requirements.class_counts || weighted) && counts != context.num_classes) {
    throw DataError(fmt::format("class_counts: expected {}, one a class, got {}", context.num_classes, counts));
  }
  if (entry.requirements.sample_ids && context.train_ids.size() != context.train_labels.size()) {
    throw DataError(fmt::format("train_ids: expected {}, one a label, got {}", context.train_labels.size(),
                                context.train_ids.size()));
  }
  std::unique_ptr<Loss> loss = entry.make(config, context);
  if (std::optional<ClassWeights> weights = ClassWeights::read(config, context.class_counts)) {
    loss->reweight(*std::move(weights));
  }
  return loss;
}

}  // namespace settrain
