#include "src/onnx/sets.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "metrics/sets/calibrate.h"
#include "metrics/sets/ranked_score.h"
#include "src/core/error.h"

namespace settrain {
namespace {

int64_t number(OnnxType type) {
  return static_cast<int64_t>(type);
}

/// The classes of each image from the largest score, ties to the lower class.
struct Order {
  OnnxGraph& graph;
  std::string logits, classes;  // `classes`: [batch, count] int64

  Order(OnnxGraph& the_graph, const std::string& the_logits, int64_t count) : graph(the_graph), logits(the_logits) {
    classes = graph.add("TopK", {logits, graph.constant(std::vector<int64_t>{count})}, {{"axis", int64_t{1}}}, 2)[1];
  }

  /// [batch, classes] bool by class of [batch, count] bool by rank; the other classes are out.
  std::string by_class(const std::string& by_rank) const {
    const std::string shape = graph.add("Shape", {logits});
    const std::string none =
        graph.add("Cast", {graph.add("ConstantOfShape", {shape})}, {{"to", number(OnnxType::kInt32)}});
    const std::string chosen = graph.add("Cast", {by_rank}, {{"to", number(OnnxType::kInt32)}});
    const std::string all = graph.add("ScatterElements", {none, classes, chosen}, {{"axis", int64_t{1}}});
    return graph.add("Cast", {all}, {{"to", number(OnnxType::kBool)}});
  }
};

std::string top(OnnxGraph& graph, int64_t k, const std::string& logits) {
  const Order order(graph, logits, k);
  const std::string zeros = graph.add("Sub", {order.classes, order.classes});
  return order.by_class(graph.add("Equal", {zeros, graph.constant(int64_t{0})}));
}

/// [batch, classes] float64: the probabilities from the most probable class on.
std::string ordered(OnnxGraph& graph, const Order& order, const std::string& probabilities) {
  const std::string p = graph.add("GatherElements", {probabilities, order.classes}, {{"axis", int64_t{1}}});
  return graph.add("Cast", {p}, {{"to", number(OnnxType::kFloat64)}});
}

/// The running sums along an image's classes; without those of the class itself where `exclusive`.
std::string sums(OnnxGraph& graph, const std::string& p, bool exclusive) {
  return graph.add("CumSum", {p, graph.constant(int64_t{1})}, {{"exclusive", int64_t{exclusive}}});
}

std::string error(OnnxGraph& graph, const CalibratedRule& rule, const std::string& logits,
                  const std::string& probabilities) {
  const Order order(graph, logits, rule.classes);
  const std::string before = sums(graph, ordered(graph, order, probabilities), true);
  return order.by_class(graph.add("Less", {before, graph.constant(1 - rule.rule.level)}));
}

/// [classes] thresholds of the classes in the order, or one for all.
std::string thresholds_in_order(OnnxGraph& graph, const CalibratedRule& rule, const Order& order) {
  const std::string thresholds = graph.constant(rule.thresholds, {std::ssize(rule.thresholds)});
  return rule.thresholds.size() == 1 ? thresholds
                                     : graph.add("Gather", {thresholds, order.classes}, {{"axis", int64_t{0}}});
}

/// aps, raps and saps with the u of rules that are not randomised.
std::string ranked(OnnxGraph& graph, const CalibratedRule& rule, const std::string& logits,
                   const std::string& probabilities) {
  const Order order(graph, logits, rule.classes);
  const std::string p = ordered(graph, order, probabilities);
  const auto by_rank = [&](const auto& penalty) {
    std::vector<double> penalties;
    for (int64_t rank = 1; rank <= rule.classes; ++rank)
      penalties.push_back(rule.rule.lambda * penalty(static_cast<double>(rank)));
    return graph.constant(penalties, {1, rule.classes});
  };
  std::string scores;
  if (rule.rule.score == ConformalScore::kSaps) {
    const std::string largest =
        graph.add("Slice", {p, graph.constant(std::vector<int64_t>{0}), graph.constant(std::vector<int64_t>{1}),
                            graph.constant(std::vector<int64_t>{1})});
    scores = graph.add("Add", {largest, by_rank([](double rank) { return rank - 1; })});
  } else {
    scores = sums(graph, p, false);
    if (rule.rule.score == ConformalScore::kRaps) {
      const auto k = static_cast<double>(rule.rule.k);
      scores = graph.add("Add", {scores, by_rank([k](double rank) { return std::max(0.0, rank - k); })});
    }
  }
  return order.by_class(graph.add("LessOrEqual", {scores, thresholds_in_order(graph, rule, order)}));
}

}  // namespace

std::string add_sets(OnnxGraph& graph, const CalibratedRule& rule, const std::string& logits,
                     const std::string& probabilities) {
  if (rule.rule.randomised || !rule.most_ranks.empty()) {
    throw ConfigError(fmt::format(
        "the rule {} cannot be exported to ONNX: {}", rule.rule.name(),
        rule.rule.randomised ? "it is randomised, by the numbers of the images" : "it limits the ranks of classes"));
  }
  using Kind = SetRule::Kind;
  if (rule.rule.kind == Kind::kTop) return top(graph, static_cast<int64_t>(rule.rule.level), logits);
  if (rule.rule.kind == Kind::kError) return error(graph, rule, logits, probabilities);
  if (rule.rule.kind == Kind::kConformal && is_ranked(rule.rule.score))
    return ranked(graph, rule, logits, probabilities);
  return graph.add("GreaterOrEqual", {probabilities, graph.constant(smallest_probabilities(rule), {rule.classes})});
}

}  // namespace settrain
