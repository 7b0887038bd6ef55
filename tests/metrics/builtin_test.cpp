#include <algorithm>
#include <array>
#include <map>
#include <string>

#include "metrics/entries.h"
#include "metrics/metric.h"
#include "src/config/key.h"
#include "src/core/metric_name.h"
#include "tests/metrics/random_split.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

/// The default of every key of every metric, with some replaced.
config::Config config_with(const MetricRegistry& registry, const std::map<std::string, config::Value>& values) {
  std::vector<config::Entry> entries;
  for (const MetricEntry& metric : registry.entries()) {
    for (const config::Key& key : metric.keys) {
      const auto value = values.find(key.name);
      entries.push_back(
          {"eval." + key.name, key, value == values.end() ? key.default_value : value->second, {"test.yaml:1:1"}});
    }
  }
  return config::Config(std::move(entries));
}

config::Config config_with(const MetricRegistry& registry, const std::string& name, const config::Value& value) {
  return config_with(registry, {{name, value}});
}

/// With every metric that is measured only on demand.
config::Config config_with_all(const MetricRegistry& registry) {
  return config_with(registry,
                     {{"superclass_accuracy", true}, {"subset.images_per_class", int64_t{4}}, {"label_sets", true}});
}

MetricRegistry builtin_metrics() {
  MetricRegistry registry("metric");
  register_builtin_metrics(registry);
  return registry;
}

TEST_CASE("every metric builds, and says what it is") {
  const MetricRegistry registry = builtin_metrics();
  const config::Config config = config_with_all(registry);
  REQUIRE(registry.names() == std::vector<std::string>{"top_k", "average_k", "superclass", "subset", "label_sets"});
  for (const MetricEntry& entry : registry.entries()) {
    CHECK_FALSE(entry.help.empty());
    CHECK_FALSE(entry.make(config)->facts().empty());
  }
}

TEST_CASE("metrics read the K of the configuration") {
  const MetricRegistry registry = builtin_metrics();
  CHECK(registry.at("top_k").make(config_with(registry, "top_k", config::Integers{7}))->facts().front().name == "top7");
  CHECK(registry.at("average_k").make(config_with(registry, "average_k", config::Reals{1.5}))->facts().front().name ==
        "avg1.5");
}

TEST_CASE("all metrics measure the bins of the configuration") {
  const MetricRegistry registry = builtin_metrics();
  const config::Config config = config_with(registry, "count_bins", config::Integers{10, 50});
  const auto has = [&](const char* metric, const char* name) {
    return std::ranges::count(registry.at(metric).make(config)->facts(), name, &MetricValue::name) == 1;
  };
  CHECK(has("top_k", "bin10_49_top5"));
  CHECK(has("average_k", "bin10_49_avg5"));
  CHECK_FALSE(has("top_k", "bin10_49_avg5"));
}

TEST_CASE("the metrics say what they are, and their names in files mean the same") {
  const MetricRegistry registry = builtin_metrics();
  const config::Config config = config_with_all(registry);
  MetricContext context;
  context.train_counts = {10, 50, 500};
  context.superclass_of = {0, 1, 1};
  for (const MetricEntry& entry : registry.entries()) {
    for (const MetricValue& value :
         entry.make(config)->compute(test::random_split(1, 20, 3, at::kFloat), context).values) {
      CAPTURE(value.name);
      CHECK(is_size(value.name) == (value.unit == MetricUnit::kClasses));
      CHECK(value.name.ends_with("_lambda") == (value.unit == MetricUnit::kThreshold));
      const std::string_view name = value.name;
      const std::string_view sets =
          name.substr(name.starts_with(kSubsetPrefix) ? std::string_view(kSubsetPrefix).size() : 0);
      const bool is_of_samples = std::ranges::any_of(std::array{"top", "avg", "sparse_top"},
                                                     [&](const char* start) { return sets.starts_with(start); });
      CHECK((value.over == MeanOver::kSamples) == (is_of_samples && !sets.ends_with("_macro_f1")));
      CHECK(value.size == name_of_metric(size_metric("val/" + value.name)));
      CHECK(is_better_by_name(value.name, 0.6, 0.5));
      CHECK((value.better == Better::kHigher) == (value.unit == MetricUnit::kFraction));
      CHECK((value.better == Better::kNeither) == (value.unit != MetricUnit::kFraction));
    }
  }
}

// A metric's values are named after its K.
TEST_CASE("a K that is listed twice is refused") {
  const MetricRegistry registry = builtin_metrics();
  int64_t lists = 0;
  for (const MetricEntry& entry : registry.entries()) {
    for (const config::Key& key : entry.keys) {
      if (std::holds_alternative<config::Integers>(key.default_value)) {
        CHECK(config::whole_error(key, config::Integers{1, 5, 1}) == "names 1 twice");
        ++lists;
      } else if (std::holds_alternative<config::Reals>(key.default_value)) {
        CHECK(config::whole_error(key, config::Reals{2.5, 2.5}) == "names 2.5 twice");
        ++lists;
      }
    }
  }
  CHECK(lists == 3);
}

TEST_CASE("the thresholds' source is a key of average-K") {
  const MetricRegistry registry = builtin_metrics();
  const config::Config config = config_with(registry, "threshold_from", std::string("same"));
  CHECK(config.read<AverageKOptions>("eval").threshold_from == "same");
}

}  // namespace
}  // namespace settrain
