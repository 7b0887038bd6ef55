// A network, and a rule that answers with sets, as ONNX nodes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "metrics/sets/rules/calibrated_rule.h"
#include "models/model.h"
#include "src/formats/onnx/graph.h"

namespace settrain {

/// Adds the nodes of `model`, in evaluation mode on the CPU, to the graph, and returns the name of its predictions
/// [batch, classes]: ModelOutput::prediction(). `images` is the name of its input, [batch, ...sizes] float32,
/// normalised. Weights keep their names of the state dict.
///
/// The operations that the model calls are recorded while it answers, each becomes the ONNX operators that compute the
/// same, and the batch's size is left open. Throws Error for an operation that has no translation.
std::string add_network(OnnxGraph& graph, Model& model, const std::string& images, const std::vector<int64_t>& sizes);

/// Adds the nodes of the rule, and returns the name of its sets, [batch, classes] bool. `logits` is the name of
/// [batch, classes] float32. Probabilities are float64, as sets_of() has them. Throws ConfigError for a rule that is
/// randomised, whose draws go by the number of an image, and for rc3p.
std::string add_sets(OnnxGraph& graph, const CalibratedRule& rule, const std::string& logits);

}  // namespace settrain
