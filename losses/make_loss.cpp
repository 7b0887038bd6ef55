#include "losses/make_loss.h"

#include <fmt/format.h>

#include "src/config/schema.h"
#include "src/core/error.h"

namespace settrain {
namespace {

/// A loss with numbers that change by epoch: it is made anew for every epoch, with the epoch's numbers. A loss with
/// state, or a key that evaluation reads (scale), has no such number.
class ChangingLoss : public Loss {
 public:
  ChangingLoss(const LossEntry& entry, const config::Config& config, const LossContext& context)
      : Loss(config, context),
        make_(entry.make),
        config_(config),
        context_(context),
        curves_(config.curves("loss")),
        last_(make_(config, context)) {
    context_.train_ids.clear();  // they may be many
    context_.train_labels.clear();
  }

  double score_scale() const override { return last_->score_scale(); }

 private:
  at::Tensor per_sample(const LossInput& input) override {
    if (input.epoch != epoch_) {
      config::Config now = config_;
      for (const config::Curve& curve : curves_) {
        now = now.with(curve.path + ".to", curve.at(input.epoch, context_.epochs));
      }
      of_epoch_ = make_(now, context_);
      epoch_ = input.epoch;
    }
    return (*of_epoch_)(input).per_sample;
  }

  std::function<std::unique_ptr<Loss>(const config::Config&, const LossContext&)> make_;
  config::Config config_;
  LossContext context_;
  std::vector<config::Curve> curves_;
  std::unique_ptr<Loss> last_, of_epoch_;  // as it is in the last epoch, and in epoch_
  int64_t epoch_ = -1;
};

void check_curves(const config::Config& config) {
  for (const config::Curve& curve : config.curves("loss")) {
    if (curve.shape != "exponential" || (curve.from > 0 && curve.to > 0)) continue;
    config.fail(curve.path + (curve.from > 0 ? ".to" : ".from"),
                "must be above 0 for an exponential curve; curve: linear and cosine reach 0");
  }
}

}  // namespace

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

config::Rule loss_rule(const LossRegistry& registry) {
  return [&registry](const config::Config& config) {
    const LossEntry& entry = registry.at(config.get<std::string>("loss.name"));
    if (entry.rule) entry.rule(config);
    check_curves(config);
  };
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
  loss_rule(registry)(config);
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
  std::unique_ptr<Loss> loss = config.curves("loss").empty() ? entry.make(config, context)
                                                             : std::make_unique<ChangingLoss>(entry, config, context);
  if (std::optional<ClassWeights> weights = ClassWeights::read(config, context.class_counts)) {
    loss->reweight(*std::move(weights));
  }
  return loss;
}

}  // namespace settrain
