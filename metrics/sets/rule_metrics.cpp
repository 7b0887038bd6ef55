#include "metrics/sets/rule_metrics.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "metrics/class_hits.h"
#include "metrics/sets/calibrate.h"
#include "metrics/sets/set_quality.h"
#include "src/core/error.h"
#include "src/core/random.h"
#include "src/core/text.h"

namespace settrain {
namespace {

struct RuleOptions {
  config::Texts rules;

  static config::Keys keys() {
    return {
        config::key(
            "rules", &RuleOptions::rules, {},
            "Rules by which scores become sets, such as conformal:pas:0.1, top:5 or average-error:0.1: for "
            "each, coverage@RULE (share of images whose set holds the label; of conformal:risk the mean share of an image's "
            "labels in its set), size@RULE (mean size), "
            "macro_coverage@RULE (mean over classes), below_half@RULE (share of classes covered in under "
            "half of their images) and undercoverage_gap@RULE; of conformal:tree also nodes@RULE (mean number of nodes "
            "of the taxonomy that make a set) and depth@RULE (their mean distance from the root). For the test split they "
            "are calibrated on the split of data.calibration_share, or on validation where there is none; of any other split "
            "one half calibrates for the other. Where `select` names a size, below_half or a gap, the epoch with the smallest "
            "value is the best.")
            .distinct()};
  }
};

/// The values of a rule's metrics. The first is named as its histogram of sizes.
std::vector<MetricValue> values_of(const SetRule& rule, const SetQuality& quality) {
  const auto named = [name = rule.name()](const char* what) { return fmt::format("{}@{}", what, name); };
  const std::string size = named("size");
  using enum MeanOver;
  using enum Better;
  constexpr MetricUnit kShare = MetricUnit::kFraction;
  std::vector<MetricValue> values{{named("coverage"), quality.coverage, kShare, kSamples, kHigher, size},
                                  {size, quality.mean_size, MetricUnit::kClasses, kSamples, kLower},
                                  {named("macro_coverage"), quality.macro_coverage, kShare, kClasses, kHigher, size},
                                  {named("below_half"), quality.below_half, kShare, kClasses, kLower}};
  if (!std::isnan(rule.wanted_coverage())) {
    values.push_back({named("undercoverage_gap"), quality.undercoverage_gap, kShare, kClasses, kLower});
  }
  if (rule.nodes > 0) {
    values.push_back({named("nodes"), quality.mean_nodes, MetricUnit::kNodes, kSamples, kLower});
    values.push_back({named("depth"), quality.mean_depth, MetricUnit::kSteps, kSamples, kHigher});
  }
  return values;
}

/// The samples that calibrate a rule, and those of the split that it is judged on.
struct Division {
  SplitScores calibration, judged;
  // [samples] int64, CPU: each sample's position in `judged`, -1 where it has none; undefined: all are judged.
  at::Tensor place;
};

Division halves_of(const SplitScores& split, uint64_t seed) {
  const int64_t samples = split.labels.size(0);
  if (samples < 2)
    throw ShapeError("eval.rules: one half of a split calibrates for the other, and this one has one image");
  std::vector<int64_t> order = permutation(samples, seed, Stream::kCalibration, /*step=*/1);
  const auto middle = order.begin() + samples / 2;
  std::sort(order.begin(), middle);
  std::sort(middle, order.end());
  const std::vector<int64_t> judged(middle, order.end());
  at::Tensor place = at::full({samples}, -1, at::kLong);
  for (size_t i = 0; i < judged.size(); ++i) place.mutable_data_ptr<int64_t>()[judged[i]] = static_cast<int64_t>(i);
  return {samples_of(split, std::span(order.begin(), middle)), samples_of(split, judged), place};
}

/// The rule's sets, judged a part at a time: the sets of all images at once may not fit.
SetOutcomes judge(const CalibratedRule& rule, const SplitScores& split, double score_scale, const Taxonomy& taxonomy) {
  constexpr int64_t kImages = 4096;
  const at::Tensor labels = labels_for(rule.rule, split).cpu();
  std::vector<at::Tensor> has_label, sizes, nodes, depths, has_rank;
  for (int64_t first = 0; first < labels.size(0); first += kImages) {
    const int64_t count = std::min(kImages, labels.size(0) - first);
    const at::Tensor sets = sets_of(rule, split.scores.narrow(0, first, count).mul(score_scale), first);
    SetOutcomes part = outcomes_of(sets, labels.narrow(0, first, count), taxonomy);
    has_label.push_back(std::move(part.has_label));
    sizes.push_back(std::move(part.sizes));
    if (taxonomy.empty()) continue;
    nodes.push_back(std::move(part.nodes));
    depths.push_back(std::move(part.depths));
    has_rank.push_back(std::move(part.has_rank));
  }
  SetOutcomes all{labels, at::cat(has_label), at::cat(sizes), split.scores.size(1)};
  if (!taxonomy.empty()) {
    all.nodes = at::cat(nodes);
    all.depths = at::cat(depths);
    all.has_rank = at::cat(has_rank);
  }
  return all;
}

/// For every rule R: "coverage@R", "size@R" (the sets' mean size), "macro_coverage@R"; "undercoverage_gap@R" where the
/// rule has an error; "below_half@R". set_quality.h says what they are. A rule is calibrated on
/// MetricContext::calibration and judged on all of the split; without that, on one half of the split, drawn by
/// MetricContext::seed, and judged on the other. The size histogram of "coverage@R" comes along.
class RuleMetrics : public Metric {
 public:
  explicit RuleMetrics(std::vector<SetRule> rules) : rules_(std::move(rules)) {}

  std::vector<MetricValue> facts() const override {
    std::vector<MetricValue> facts;
    for (const SetRule& rule : rules_) append(facts, values_of(rule, {}));
    return facts;
  }

  /// Throws what calibrate() throws, and ShapeError where a split that calibrates itself has fewer than two samples.
  ResultsOfSamples prepare(const SplitScores& split, const MetricContext& context) const override {
    const Division division =
        context.calibration ? Division{*context.calibration, split, {}} : halves_of(split, context.seed);
    const ClassFacts facts{.classes = split.scores.size(1),
                           .names = context.class_names,
                           .train_counts = context.train_counts,
                           .superclass_of = context.superclass_of,
                           .taxonomy = context.taxonomy,
                           .probability = context.sigmoid ? ProbabilityKind::kSigmoid : ProbabilityKind::kSoftmax};
    const at::Tensor calibration = division.calibration.scores.mul(context.score_scale);
    std::vector<SetOutcomes> outcomes;
    for (const SetRule& rule : rules_) {
      const CalibratedRule calibrated =
          calibrate(rule, facts, calibration, labels_for(rule, division.calibration), context.seed);
      // Nodes are counted for the rules that answer by them.
      outcomes.push_back(
          judge(calibrated, division.judged, context.score_scale, rule.nodes > 0 ? context.taxonomy : Taxonomy()));
    }
    return [this, outcomes = std::move(outcomes), place = division.place,
            train_counts = context.train_counts](const at::Tensor& samples) {
      at::Tensor judged = samples.defined() ? samples.cpu() : samples;
      if (samples.defined() && place.defined()) {
        judged = place.index_select(0, judged);
        judged = judged.masked_select(judged.ge(0));
      }
      EvaluationResult result;
      for (size_t i = 0; i < rules_.size(); ++i) {
        const SetOutcomes some = judged.defined() ? outcomes[i].of(judged) : outcomes[i];
        const SetQuality quality = set_quality(some, rules_[i].wanted_coverage(), train_counts);
        std::vector<MetricValue> values = values_of(rules_[i], quality);
        result.set_sizes.push_back({values.front().name, counts_of(some.sizes, some.classes + 1)});
        append(result.values, std::move(values));
      }
      return result;
    };
  }

 private:
  std::vector<SetRule> rules_;
};

}  // namespace

std::vector<SetRule> read_rules(const config::Config& config) {
  std::vector<SetRule> rules;
  config::Texts problems;
  for (const std::string& text : config.read<RuleOptions>("eval").rules) {
    try {
      rules.push_back(parse_set_rule(text));
      if (std::ranges::count(rules, rules.back()) > 1) problems.push_back("names " + rules.back().name() + " twice");
    } catch (const ConfigError& error) {
      problems.push_back(error.what());
    }
  }
  if (!problems.empty()) config.fail("eval.rules", join(problems, "; "));
  return rules;
}

std::unique_ptr<Metric> make_rule_metrics(std::vector<SetRule> rules) {
  return std::make_unique<RuleMetrics>(std::move(rules));
}

void register_set_metrics(MetricRegistry& registry) {
  registry.add({"rules",
                "Set rules: coverage, size, coverage averaged over classes, share of classes covered in under half of "
                "their images, and mean under-coverage gap of the sets of every rule of eval.rules.",
                RuleOptions::keys(),
                [](const config::Config& config) { return make_rule_metrics(read_rules(config)); }});
}

}  // namespace settrain
