#include "src/onnx/write_onnx.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "metrics/sets/rules/stored_rules.h"
#include "src/formats/onnx/graph.h"
#include "src/onnx/nodes.h"

namespace settrain {
namespace {

/// The name of pixels as the network takes them.
std::string normalised(OnnxGraph& graph, const std::string& pixels, const ModelCard& card, OnnxInput input) {
  std::string values = pixels;
  if (input == OnnxInput::kBytes) {
    values = graph.add("Cast", {values}, {{"to", static_cast<int64_t>(OnnxType::kFloat32)}});
    values = graph.add("Div", {values, graph.constant(255.0F)});
  }
  const auto by_channel = [&](const std::vector<float>& numbers) {
    return graph.constant(numbers, {std::ssize(numbers), 1, 1});
  };
  values = graph.add("Sub", {values, by_channel(card.mean)});
  return graph.add("Div", {values, by_channel(card.std)});
}

}  // namespace

OnnxFile write_onnx(const std::filesystem::path& file, Model& model, const ModelCard& card,
                    const OnnxOptions& options) {
  OnnxGraph graph;
  const auto classes = std::ssize(card.class_names);
  const std::vector<int64_t> sizes{card.channels, card.input_height, card.input_width}, of_classes{-1, classes};
  graph.input("pixels", options.input == OnnxInput::kBytes ? OnnxType::kUint8 : OnnxType::kFloat32,
              {-1, card.channels, card.input_height, card.input_width});
  const std::string images = normalised(graph, "pixels", card, options.input);
  const std::string scores = add_network(graph, model, images, sizes);
  // Multiplied, then divided: the order in which `settrain predict` rounds.
  const std::string scaled = graph.add("Mul", {scores, graph.constant(static_cast<float>(card.score_scale))});
  const std::string logits = graph.add("Div", {scaled, graph.constant(static_cast<float>(options.temperature))});
  const std::string probabilities =
      card.is_sigmoid ? graph.add("Sigmoid", {logits}) : graph.add("Softmax", {logits}, {{"axis", int64_t{1}}});
  graph.output("scores", scores, OnnxType::kFloat32, of_classes);
  graph.output("probabilities", probabilities, OnnxType::kFloat32, of_classes);

  graph.fact("card", to_text(card));
  graph.fact("classes",
             nlohmann::json(card.class_names).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  if (options.rule) {
    graph.output("set", add_sets(graph, *options.rule, logits), OnnxType::kBool, of_classes);
    graph.fact("rule", options.rule->rule.name());
    graph.fact("rules_version", std::to_string(kRuleVersion));
    graph.fact("guarantee", options.rule->guarantee);
  }
  for (const auto& [key, value] : options.facts) graph.fact(key, value);

  graph.write(file);
  return {graph.num_nodes(), kOnnxOpset};
}

}  // namespace settrain
