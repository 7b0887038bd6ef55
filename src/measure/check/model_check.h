// Models against golden files recorded by another implementation.
#pragma once

#include <c10/core/Device.h>

#include <filesystem>
#include <vector>

#include "models/registry.h"
#include "src/measure/check/check_report.h"

namespace settrain {

/// For every NAME.json (made by scripts/record_model_golden.py): builds the model, fills it by the closed formula, and
/// compares the logits in evaluation and training mode in float64 and float32, every gradient and every buffer in
/// float64, and the gradients' norms in float32. Where NAME.params.txt and NAME.init.json lie beside it, also the
/// entries' names and shapes and the initial weights. A NAME.params.txt may also be given alone.
/// Forbids TF32. Throws DataError naming the file where it is missing or malformed.
std::vector<CheckRow> check_models(const ModelRegistry& registry, at::Device device,
                                   const std::vector<std::filesystem::path>& files);

}  // namespace settrain
