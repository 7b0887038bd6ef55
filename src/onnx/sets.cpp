// add_sets(): rules that answer with sets as ONNX nodes.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "metrics/sets/calibrate.h"
#include "metrics/sets/score_rows.h"
#include "src/core/error.h"
#include "src/onnx/nodes.h"

namespace settrain {
namespace {

int64_t number(OnnxType type) {
  return static_cast<int64_t>(type);
}

/// [batch, classes] float64: the probabilities that rules see.
struct Probabilities {
  std::string p;
  std::string rest;  // 1 - p where p > 1/2, with all its digits, as [batch, 1] or [batch, classes]; elsewhere anything
};

/// As tail_exponential() of metrics/sets/score_rows.h.
std::string tail_exponential(OnnxGraph& graph, const std::string& x) {
  const std::string least = graph.constant(kLeastExponent);
  const std::string power = graph.add("Exp", {graph.add("Max", {x, least})});
  return graph.add("Mul", {power, graph.add("Div", {least, graph.add("Min", {x, least})})});
}

std::string without_tail(OnnxGraph& graph, const std::string& p) {
  const std::string is_tail = graph.add("Less", {p, graph.constant(kTailProbability)});
  return graph.add("Where", {is_tail, graph.constant(0.0), p});
}

/// As summed_probability() of score_rows.h: `sum` of the probabilities without_tail(), or where it is 0 the `largest`.
std::string sum_or_largest(OnnxGraph& graph, const std::string& sum, const std::string& largest) {
  return graph.add("Where", {graph.add("Greater", {sum, graph.constant(0.0)}), sum, largest});
}

Probabilities probabilities_of(OnnxGraph& graph, const std::string& logits, ProbabilityKind kind) {
  const std::string exact = graph.add("Cast", {logits}, {{"to", number(OnnxType::kFloat64)}});
  if (kind == ProbabilityKind::kSigmoid) {
    // ONNX Runtime's Sigmoid of float64 has the digits of float32 only. With e = exp(-|x|) it is 1 / (1 + e) or
    // e / (1 + e).
    const std::string e = tail_exponential(graph, graph.add("Neg", {graph.add("Abs", {exact})}));
    const std::string one = graph.constant(1.0), sum = graph.add("Add", {e, one});
    const std::string larger = graph.add("Div", {one, sum}), smaller = graph.add("Div", {e, sum});
    const std::string is_positive = graph.add("Greater", {exact, graph.constant(0.0)});
    return {graph.add("Where", {is_positive, larger, smaller}), graph.add("Where", {is_positive, smaller, larger})};
  }
  // The softmax, whose sum over the classes but the largest is the rest of that one.
  const std::string one = graph.constant(std::vector<int64_t>{1});
  const auto largest = graph.add("TopK", {exact, one}, {{"axis", int64_t{1}}}, 2);
  const std::string powers = tail_exponential(graph, graph.add("Sub", {exact, largest[0]}));
  const std::string zero = graph.add("Sub", {largest[0], largest[0]});
  const std::string others = graph.add("ScatterElements", {powers, largest[1], zero}, {{"axis", int64_t{1}}});
  const std::string behind = sum_or_largest(graph, graph.add("ReduceSum", {without_tail(graph, others), one}),
                                            graph.add("TopK", {others, one}, {{"axis", int64_t{1}}}, 2)[0]);
  const std::string sum = graph.add("Add", {behind, graph.constant(1.0)});
  const std::string logs = graph.add("Sub", {graph.add("Sub", {exact, largest[0]}), graph.add("Log", {sum})});
  const std::string p = graph.add("Div", {powers, sum});
  const std::string is_tail = graph.add("Less", {p, graph.constant(kTailProbability)});
  return {graph.add("Where", {is_tail, tail_exponential(graph, logs), p}), graph.add("Div", {behind, sum})};
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

  /// [batch, count] float64: the sum of `p` over the classes behind each, as RankedRow has it.
  std::string behind(const std::string& p) const {
    const std::string ordered = graph.add("GatherElements", {p, classes}, {{"axis", int64_t{1}}});
    const std::string sums = graph.add("CumSum", {without_tail(graph, ordered), graph.constant(int64_t{1})},
                                       {{"exclusive", int64_t{1}}, {"reverse", int64_t{1}}});
    const auto columns = [&](int64_t begin, int64_t end) {
      const auto whole = [&](int64_t value) { return graph.constant(std::vector<int64_t>{value}); };
      return graph.add("Slice", {ordered, whole(begin), whole(end), whole(1)});
    };
    const std::string first = columns(0, 1), zero = graph.add("Sub", {first, first});
    const std::string next =
        graph.add("Concat", {columns(1, std::numeric_limits<int64_t>::max()), zero}, {{"axis", int64_t{1}}});
    return sum_or_largest(graph, sums, next);
  }
};

std::string top(OnnxGraph& graph, int64_t k, const std::string& logits) {
  const Order order(graph, logits, k);
  const std::string zeros = graph.add("Sub", {order.classes, order.classes});
  return order.by_class(graph.add("Equal", {zeros, graph.constant(int64_t{0})}));
}

/// A class is in where the classes before it leave more than `error`: the classes behind the one before it.
std::string error(OnnxGraph& graph, const CalibratedRule& rule, const std::string& logits) {
  const Order order(graph, logits, rule.classes);
  const std::string p = probabilities_of(graph, logits, rule.probability).p;
  const std::string ordered = graph.add("GatherElements", {p, order.classes}, {{"axis", int64_t{1}}});
  const std::string outside = graph.add("Add", {order.behind(p), ordered});
  return order.by_class(graph.add("Greater", {outside, graph.constant(rule.rule.level * (1 + kRoundingShare))}));
}

// Runtimes round otherwise than settrain does, and a class that ties with its threshold must not drop out for that: it
// may be the same one in every image. So probabilities may lie below their bounds by kRoundingShare.

/// aps, raps and saps with the u of rules that are not randomised: a penalty by rank minus a probability.
std::string ranked(OnnxGraph& graph, const CalibratedRule& rule, const std::string& logits) {
  const Order order(graph, logits, rule.classes);
  const SetRule& name = rule.rule;
  const auto [lambda, k] = rule.penalty();
  const std::string exactly = order.behind(probabilities_of(graph, logits, rule.probability).p);
  // ONNX Runtime takes a product with 1 + 1e-12 for one with 1, and leaves it out.
  std::string behind = graph.add("Add", {exactly, graph.add("Mul", {exactly, graph.constant(kRoundingShare)})});
  std::vector<double> penalties, high, low;
  for (int64_t rank = 1; rank <= rule.classes; ++rank) {
    const int64_t counted = name.score == ConformalScore::kRaps ? std::max<int64_t>(0, rank - k) : rank - 1;
    penalties.push_back(name.score == ConformalScore::kAps ? 0 : lambda * static_cast<double>(counted));
  }
  for (const DoubleDouble& threshold : rule.thresholds) {
    high.push_back(threshold.high);
    low.push_back(threshold.low);
  }
  if (name.score == ConformalScore::kSaps) {
    const auto whole = [&](int64_t value) { return graph.constant(std::vector<int64_t>{value}); };
    behind = graph.add("Slice", {behind, whole(0), whole(1), whole(1)});
  }
  // The sum of both and what rounding takes from it, as DoubleDouble::sum() has it, compared as DoubleDoubles are.
  const std::string penalty = graph.constant(penalties, {1, rule.classes}), minus = graph.add("Neg", {behind});
  const std::string sum = graph.add("Add", {penalty, minus}), from_second = graph.add("Sub", {sum, penalty});
  const std::string rounding = graph.add("Add", {graph.add("Sub", {penalty, graph.add("Sub", {sum, from_second})}),
                                                 graph.add("Sub", {minus, from_second})});
  const auto in_order = [&](const std::vector<double>& values) {
    const std::string constant = graph.constant(values, {std::ssize(values)});
    return values.size() == 1 ? constant : graph.add("Gather", {constant, order.classes}, {{"axis", int64_t{0}}});
  };
  const std::string threshold = in_order(high);
  const std::string same =
      graph.add("And", {graph.add("Equal", {sum, threshold}), graph.add("LessOrEqual", {rounding, in_order(low)})});
  return order.by_class(graph.add("Or", {graph.add("Less", {sum, threshold}), same}));
}

std::string by_probability(OnnxGraph& graph, const CalibratedRule& rule, const std::string& logits) {
  const auto [p, rest] = probabilities_of(graph, logits, rule.probability);
  ProbabilityBounds bounds = probability_bounds(rule);
  for (double& least : bounds.least) least *= 1 - kRoundingShare;
  for (double& most : bounds.most_rest) most *= 1 + kRoundingShare;
  const std::string unlikely = graph.add("GreaterOrEqual", {p, graph.constant(bounds.least, {rule.classes})});
  const std::string likely = graph.add("LessOrEqual", {rest, graph.constant(bounds.most_rest, {rule.classes})});
  const std::string above = graph.add("And", {graph.add("Greater", {p, graph.constant(0.5)}), likely});
  return graph.add("Or", {unlikely, above});  // where p > 1/2 reaches `least`, any rest will do
}

/// The sets of a rule, before a class joins empty ones.
std::string calibrated_sets(OnnxGraph& graph, const CalibratedRule& rule, const std::string& logits) {
  const auto refuse = [&rule](const char* why) {
    throw ConfigError(fmt::format("the rule {} cannot be exported to ONNX: {}", rule.rule.name(), why));
  };
  if (rule.rule.randomised) refuse("it is randomised, by the numbers of the images");
  if (!rule.most_ranks.empty()) refuse("it limits the ranks of classes");
  if (!rule.tree.empty()) refuse("its answers grow over a taxonomy, class by class");
  using Kind = SetRule::Kind;
  if (rule.rule.kind == Kind::kTop) return top(graph, static_cast<int64_t>(rule.rule.level), logits);
  if (rule.rule.kind == Kind::kError) return error(graph, rule, logits);
  if (rule.rule.kind == Kind::kConformal && is_ranked(rule.rule.score)) return ranked(graph, rule, logits);
  return by_probability(graph, rule, logits);
}

}  // namespace

std::string add_sets(OnnxGraph& graph, const CalibratedRule& rule, const std::string& logits) {
  const std::string sets = calibrated_sets(graph, rule, logits);
  if (!rule.rule.nonempty) return sets;
  const std::string counts = graph.add("Cast", {sets}, {{"to", number(OnnxType::kInt32)}});
  const std::string sizes = graph.add("ReduceSum", {counts, graph.constant(std::vector<int64_t>{1})});
  const std::string zero = graph.add("Sub", {sizes, sizes});
  return graph.add("Or", {sets, graph.add("And", {graph.add("Equal", {sizes, zero}), top(graph, 1, logits)})});
}

}  // namespace settrain
