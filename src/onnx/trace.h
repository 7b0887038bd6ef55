// A network as ONNX nodes.
#pragma once

#include <string>
#include <vector>

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

}  // namespace settrain
