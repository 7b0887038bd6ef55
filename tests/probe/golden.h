// Recorded values of scikit-learn 1.9.1 in tests/golden/probe.json: what its classifiers say of 40 test images, trained
// on 72 of 4 classes with 6 features on different scales, drawn by numpy and rounded to 3 digits.
#pragma once

#include <ATen/ATen.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "src/probe/nearest.h"

namespace settrain::test {

inline nlohmann::json probe_golden() {
  std::ifstream file(std::string(std::getenv("SETTRAIN_SOURCE_DIR")) + "/tests/golden/probe.json");
  return nlohmann::json::parse(file);
}

/// Rows of numbers as [rows, width] float64.
inline at::Tensor matrix_of(const nlohmann::json& rows) {
  std::vector<double> numbers;
  for (const auto& row : rows) {
    for (const double number : row) numbers.push_back(number);
  }
  const auto size = static_cast<int64_t>(rows.size());
  return at::tensor(numbers, at::kDouble).view({size, -1});
}

inline at::Tensor labels_of(const nlohmann::json& labels) {
  return at::tensor(labels.get<std::vector<int64_t>>(), at::kLong);
}

/// The training or test images.
inline LabelledFeatures features_of(const nlohmann::json& golden, const std::string& split) {
  return {matrix_of(golden.at(split)).to(at::kFloat), labels_of(golden.at(split + "_labels"))};
}

}  // namespace settrain::test
