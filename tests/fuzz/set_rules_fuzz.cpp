// Rules that were calibrated for a model: stored_rules_from_text(), and back again.
#include <cmath>
#include <cstdint>
#include <string>

#include "metrics/sets/rules/stored_rules.h"
#include "tests/support/fuzzing.h"

using namespace settrain;
using test::must;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr int64_t kClasses = 3;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto stored = test::unless_refused([&] { return stored_rules_from_text(text, kClasses, "'file'"); });
  if (!stored) return 0;
  must(std::isfinite(stored->temperature) && stored->temperature > 0, "scores can be divided");
  for (const CalibratedRule& rule : stored->rules) {
    must(rule.classes == kClasses && rule.images >= 0, "the rule is for these classes");
    const size_t classes = kClasses;
    for (const size_t numbers : {rule.most_ranks.size(), rule.class_factor.size()}) {
      must(numbers == 0 || numbers == classes, "a number for each class, or none");
    }
    must(rule.thresholds.size() <= 1 || rule.thresholds.size() == classes, "a threshold, or one for each class");
    for (const DoubleDouble& threshold : rule.thresholds) {
      must(threshold.high + threshold.low == threshold.high, "the low part is what rounding took");
    }
    for (const int64_t rank : rule.most_ranks) must(rank >= 1 && rank <= kClasses, "ranks are those of classes");
    for (const double factor : rule.class_factor) must(factor >= 0, "factors are no NaN and not negative");
  }
  const std::string written = to_text(*stored);
  must(to_text(stored_rules_from_text(written, kClasses, "'again'")) == written, "what is written is the same");
  return 0;
}
