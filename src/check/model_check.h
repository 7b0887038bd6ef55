// Models against golden files recorded by another implementation.
#pragma once

#include <c10/core/Device.h>

#include <filesystem>
#include <vector>

#include "models/registry.h"
#include "src/check/check_report.h"

namespace settrain {

/// For every file (made by scripts/record_model_golden.py): builds the model, fills it by the closed formula, and
/// compares names and shapes, logits in evaluation and training mode, every gradient and every buffer in float64, and
/// the logits in float32. Throws DataError naming the file where it is missing or malformed.
std::vector<CheckRow> check_models(const ModelRegistry& registry, at::Device device,
                                   const std::vector<std::filesystem::path>& files);

}  // namespace settrain
