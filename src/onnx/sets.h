// Rules that answer with sets as ONNX nodes.
#pragma once

#include <string>

#include "metrics/sets/rules/calibrated_rule.h"
#include "src/formats/onnx/graph.h"

namespace settrain {

/// Adds the nodes of the rule, and returns the name of its sets, [batch, classes] bool. `logits` is the name of
/// [batch, classes] float32. Probabilities are float64, as sets_of() has them. Throws ConfigError for a rule that is
/// randomised, whose draws go by the number of an image, and for rc3p.
std::string add_sets(OnnxGraph& graph, const CalibratedRule& rule, const std::string& logits);

}  // namespace settrain
