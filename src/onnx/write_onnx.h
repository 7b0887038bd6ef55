// A trained model as an ONNX file.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "metrics/sets/rules/calibrated_rule.h"
#include "models/model.h"
#include "src/formats/model_card.h"

namespace settrain {

/// The type of pixels: bytes, or float32 in [0, 1].
enum class OnnxInput { kBytes, kFloats };

struct OnnxOptions {
  OnnxInput input = OnnxInput::kBytes;
  double temperature = 1;                      // of the calibrated rules, StoredRules::temperature
  std::optional<CalibratedRule> rule = {};     // whose sets are an output
  std::map<std::string, std::string> facts{};  // for the file's metadata
};

/// Facts about the file that was written.
struct OnnxFile {
  int64_t num_nodes = 0, opset = 0;
};

/// Writes `model`, in evaluation mode on the CPU, with what `card` says: opset 17, for images of the card's input size.
///
///   input `pixels`: [batch, channels, height, width] uint8 or float32
///
///   output `scores`: [batch, classes] float32, of the head that predicts, without scale
///
///   output `probabilities`: [batch, classes] float32, softmax or sigmoid of scores times the card's scale over the
///   temperature
///
///   output `set`: [batch, classes] bool, with a rule
///
/// The metadata have the card, the names of the classes as a JSON list, the rule and what it promises. Computes in
/// float32 whatever train.precision was. Throws ConfigError for a rule that graphs cannot have (nodes.h), and RunError
/// where the file cannot be written.
OnnxFile write_onnx(const std::filesystem::path& file, Model& model, const ModelCard& card, const OnnxOptions& options);

}  // namespace settrain
