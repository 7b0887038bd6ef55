// The scores of aps, raps and saps are computed by RankedScore, those of lac and pas by class_score, both in the
// header, those of tree by GrowingAnswer.
#include "metrics/sets/conformal_scores.h"

#include <fmt/format.h>

#include <numeric>

#include "datasets/class_table.h"
#include "src/core/error.h"
#include "src/core/text.h"

namespace settrain {
namespace {

template <class T>
void find_class_scores(const CalibratedRule& rule, const at::Tensor& scores, const int64_t* labels,
                       DoubleDouble* found) {
  for_each_score_row<T>(scores, rule.probability, [&] {
    return [&, labels, found](const ScoreRow<T>& row) {
      const int64_t label = labels[row.image];
      found[row.image] = class_score(rule, static_cast<size_t>(label), row.p[label], row.rest(label));
    };
  });
}

template <class T>
void find_ranked_scores(const CalibratedRule& rule, const at::Tensor& scores, const int64_t* labels,
                        DoubleDouble* found) {
  for_each_score_row<T>(scores, rule.probability, [&] {
    return [&, labels, found, ranked = RankedRow<T>(rule.classes)](const ScoreRow<T>& row) mutable {
      const double u = rule.rule.randomised ? set_noise(rule.seed, SetNoise::kCalibrationImage, row.image)
                                            : fixed_u(rule.rule.score);
      RankedScore score(rule, u);
      ranked.start(row);
      for (int64_t rank = 0;; ++rank) {
        const auto [category, p, behind] = ranked.entry(rank);
        found[row.image] = score.next(p, behind);
        if (category == labels[row.image]) break;
      }
    };
  });
}

template <class T>
void find_tree_scores(const CalibratedRule& rule, const at::Tensor& scores, const int64_t* labels,
                      DoubleDouble* found) {
  const NodeCover tree(rule.tree, rule.classes);
  for_each_score_row<T>(scores, rule.probability, [&] {
    return [&, labels, found, ranked = RankedRow<T>(rule.classes),
            answer = GrowingAnswer(tree, rule.rule.nodes)](const ScoreRow<T>& row) mutable {
      ranked.start(row);
      answer.start(row.p);
      for (int64_t rank = 0; !answer.holds(labels[row.image]);) answer.grow_by_next(ranked, rank);
      found[row.image] = answer.score();
    };
  });
}

template <class T>
auto finder(const CalibratedRule& rule) {
  const bool conformal = rule.rule.kind == SetRule::Kind::kConformal;
  if (conformal && rule.rule.score == ConformalScore::kTree) return find_tree_scores<T>;
  return conformal && is_ranked(rule.rule.score) ? find_ranked_scores<T> : find_class_scores<T>;
}

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

GrowingAnswer::GrowingAnswer(const NodeCover& tree, int64_t most_nodes) : tree_(tree), most_nodes_(most_nodes) {}

void GrowingAnswer::start(const double* p) {
  p_ = p;
  mass_ = tree_.masses(p);
  nodes_.clear();
  held_.assign(static_cast<size_t>(tree_.classes()), 0);
}

void GrowingAnswer::grow(int64_t category) {
  nodes_.push_back(category);
  nodes_ = tree_.cover(nodes_, mass_, most_nodes_);
  for (const int64_t node : nodes_) {
    for (const int64_t leaf : tree_.leaves(node)) held_[static_cast<size_t>(leaf)] = 1;
  }
}

double GrowingAnswer::score() const {
  return -summed_probability(tree_.classes(), [this](int64_t c) { return holds(c) ? 0 : p_[c]; });
}

std::vector<DoubleDouble> label_scores(const CalibratedRule& rule, const at::Tensor& scores, const at::Tensor& labels) {
  std::vector<DoubleDouble> found(static_cast<size_t>(labels.size(0)));
  const auto find = scores.scalar_type() == at::kDouble ? finder<double>(rule) : finder<float>(rule);
  find(rule, scores, labels.const_data_ptr<int64_t>(), found.data());
  return found;
}

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
