#include "metrics/sets/rule_metrics.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "metrics/sets/calibrate.h"
#include "metrics/sets/set_quality.h"
#include "metrics/size_counts.h"
#include "src/core/error.h"
#include "src/core/random.h"

namespace settrain {
namespace {

std::vector<std::string> names_of(const SetRule& rule) {
  const std::string name = fmt::format("@{}", rule.name());
  std::vector<std::string> names{"coverage" + name, "size" + name, "macro_coverage" + name, "below_half" + name};
  if (!std::isnan(rule.wanted_coverage())) names.push_back("undercoverage_gap" + name);
  return names;
}

/// The values that go with names_of(), in that order.
std::vector<MetricValue> values_of(const SetRule& rule, const SetQuality& quality) {
  const std::vector<double> values{quality.coverage, quality.mean_size, quality.macro_coverage, quality.below_half,
                                   quality.undercoverage_gap};
  std::vector<MetricValue> named;
  for (std::string& name : names_of(rule)) named.push_back({std::move(name), values[named.size()]});
  return named;
}

/// What a rule is calibrated on, and which samples of the split it is judged on.
struct Division {
  SplitScores calibration, judged;
  at::Tensor
      place;  // [samples] int64, CPU: each sample's position in `judged`, -1 where it has none; or undefined: all
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
SetOutcomes judge(const CalibratedRule& rule, const SplitScores& split, double score_scale) {
  constexpr int64_t kImages = 4096;
  const at::Tensor labels = split.labels.cpu();
  std::vector<at::Tensor> has_label, sizes;
  for (int64_t first = 0; first < labels.size(0); first += kImages) {
    const int64_t count = std::min(kImages, labels.size(0) - first);
    const at::Tensor sets = sets_of(rule, split.scores.narrow(0, first, count).mul(score_scale), first);
    SetOutcomes part = outcomes_of(sets, labels.narrow(0, first, count));
    has_label.push_back(std::move(part.has_label));
    sizes.push_back(std::move(part.sizes));
  }
  return {labels, at::cat(has_label), at::cat(sizes), split.scores.size(1)};
}

}  // namespace

config::Keys RuleOptions::keys() {
  return {config::key("rules", &RuleOptions::rules, {},
                      "Rules by which scores become sets, such as conformal:pas:0.1, top:5 or average-error:0.1: for "
                      "each, coverage@RULE (share of images whose set holds the label), size@RULE (mean size), "
                      "macro_coverage@RULE (mean over classes), below_half@RULE (share of classes covered in under "
                      "half of their images) and undercoverage_gap@RULE. For the test split they are calibrated on "
                      "the split of data.calibration_share, or on validation where there is none; of any other split "
                      "one half calibrates for the other. Of sizes, below_half and gaps, `select` takes the smallest.")
              .distinct()};
}

std::vector<SetRule> read_rules(const config::Config& config) {
  std::vector<SetRule> rules;
  std::string problems;
  for (const std::string& text : config.read<RuleOptions>("eval").rules) {
    try {
      rules.push_back(parse_set_rule(text));
      const bool is_new = std::count(rules.begin(), rules.end(), rules.back()) == 1;
      if (!is_new) problems += fmt::format("{}names {} twice", problems.empty() ? "" : "; ", rules.back().name());
    } catch (const ConfigError& error) {
      problems += (problems.empty() ? "" : "; ") + std::string(error.what());
    }
  }
  if (!problems.empty()) config.fail("eval.rules", problems);
  return rules;
}

std::vector<std::string> RuleMetrics::names() const {
  std::vector<std::string> names;
  for (const SetRule& rule : rules_) {
    for (std::string& name : names_of(rule)) names.push_back(std::move(name));
  }
  return names;
}

ResultsOfSamples RuleMetrics::prepare(const SplitScores& split, const MetricContext& context) const {
  if (rules_.empty()) return [](const at::Tensor&) { return EvaluationResult(); };
  const Division division =
      context.calibration ? Division{*context.calibration, split, {}} : halves_of(split, context.seed);
  const ClassFacts facts{.classes = split.scores.size(1),
                         .names = context.class_names,
                         .train_counts = context.train_counts,
                         .superclass_of = context.superclass_of,
                         .probability = context.sigmoid ? ProbabilityKind::kSigmoid : ProbabilityKind::kSoftmax};
  const at::Tensor calibration = division.calibration.scores.mul(context.score_scale);
  std::vector<SetOutcomes> outcomes;
  for (const SetRule& rule : rules_) {
    const CalibratedRule calibrated = calibrate(rule, facts, calibration, division.calibration.labels, context.seed);
    outcomes.push_back(judge(calibrated, division.judged, context.score_scale));
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
      for (MetricValue& value : values_of(rules_[i], quality)) result.values.push_back(std::move(value));
      result.set_sizes.push_back({names_of(rules_[i]).front(), size_counts(some.sizes, some.classes)});
    }
    return result;
  };
}

void register_set_metrics(MetricRegistry& registry) {
  registry.add({"rules",
                "Set rules: coverage, size, coverage averaged over classes, share of classes covered in under half of "
                "their images, and mean under-coverage gap of the sets of every rule of eval.rules.",
                RuleOptions::keys(),
                [](const config::Config& config) { return std::make_unique<RuleMetrics>(read_rules(config)); }});
}

}  // namespace settrain
