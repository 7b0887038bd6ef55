#include "metrics/sets/class_factors.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "datasets/class_table.h"
#include "src/core/error.h"
#include "src/core/text.h"

namespace settrain {
namespace {

std::vector<double> read_weights(const std::string& file, const ClassFacts& facts) {
  std::vector<std::string> names = facts.names;
  for (int64_t c = std::ssize(names); c < facts.classes; ++c) names.push_back(std::to_string(c));
  std::vector<double> weights;
  for (const std::string& text : read_class_table(file, names)) {
    const double weight = parse_number<double>(text).value_or(-1);
    if (!(weight >= 0 && std::isfinite(weight))) {
      throw DataError(fmt::format("{}: the weight of the class {} must be a number, at least 0, got {}", file,
                                  in_quotes(names[weights.size()]), in_quotes(text)));
    }
    weights.push_back(weight);
  }
  return weights;
}

}  // namespace

std::vector<double> class_factors(const SetRule& rule, const ClassFacts& facts) {
  if (rule.kind != SetRule::Kind::kConformal) return {};
  if (rule.score != ConformalScore::kPas && rule.score != ConformalScore::kWpas) return {};
  const auto images =
      static_cast<double>(std::accumulate(facts.train_counts.begin(), facts.train_counts.end(), int64_t{0}));
  std::vector<double> factors;
  for (const int64_t count : facts.train_counts) {
    factors.push_back(count > 0 ? images / static_cast<double>(count) : kAlwaysIn);
  }
  if (rule.score == ConformalScore::kPas) return factors;
  const std::vector<double> weights = read_weights(rule.weights, facts);
  for (size_t c = 0; c < factors.size(); ++c) {
    if (std::isfinite(factors[c])) factors[c] *= weights[c];
  }
  return factors;
}

}  // namespace settrain
