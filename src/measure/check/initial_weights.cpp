#include "src/measure/check/initial_weights.h"

#include <algorithm>
#include <cmath>

#include "models/model.h"
#include "src/measure/check/json_place.h"

namespace settrain {
namespace {

// Of some hundred parameters, all drawn from one seed: a right model is beyond this once in 100,000 seeds.
constexpr double kStandardErrors = 5.5;

// Standard errors between a sample of `n` values and its distribution. Uniform values end at sqrt(3) standard
// deviations; of normal ones, one in twelve lies beyond.
double standard_errors(const at::Tensor& values, double mean, double deviation, bool uniform) {
  const auto n = static_cast<double>(values.numel());
  const double of_mean = std::abs(values.mean().item<double>() - mean) / (deviation / std::sqrt(n));
  const double error_of_deviation = deviation * std::sqrt((uniform ? 0.8 : 2.0) / (4 * n));
  const double of_deviation = std::abs(values.std(/*unbiased=*/false).item<double>() - deviation) / error_of_deviation;
  const double end = (values - mean).abs().max().item<double>() / (deviation * std::sqrt(3.0));
  constexpr double kRounding = 1e-6, kEnough = 1000;
  const bool is_other = uniform ? end > 1 + kRounding : n >= kEnough && end <= 1;
  return is_other ? INFINITY : worse(of_mean, of_deviation);
}

// Columns of uniform values around 0, scaled to length 1: the deviation follows from the length, the ends vary a
// little.
double errors_of_columns(const at::Tensor& values, double deviation) {
  constexpr double kRounding = 1e-6, kLeastEnd = 0.95, kMostEnd = 1.2;
  const double length = (values.norm(2, 0) - 1).abs().max().item<double>() / kRounding;
  const double of_mean =
      std::abs(values.mean().item<double>()) / (deviation / std::sqrt(static_cast<double>(values.numel())));
  const double end = values.abs().max().item<double>() / (deviation * std::sqrt(3.0));
  return end >= kLeastEnd && end <= kMostEnd ? worse(length, of_mean) : INFINITY;
}

}  // namespace

CheckRow check_initial_weights(const std::filesystem::path& file, const std::string& name, const Model& model) {
  const nlohmann::json json = read_json(file);
  const auto parameters = model.named_parameters();
  double worst = 0;
  std::string note;
  for (const JsonPlace& expected : JsonPlace(json, file)["parameters"].elements()) {
    const at::Tensor* parameter = parameters.find(expected["name"].text());
    const std::string distribution = expected["distribution"].text();
    const double mean = expected["expected_mean"].real(), deviation = expected["expected_std"].real();
    double error = INFINITY;
    if (parameter && deviation == 0) {
      error = (*parameter == mean).all().item<bool>() ? 0 : INFINITY;
    } else if (parameter) {
      const bool scaled = distribution.find("scaled to norm 1") != std::string::npos;
      const at::Tensor values = parameter->detach().to(at::kDouble);
      error = scaled ? errors_of_columns(values, deviation)
                     : standard_errors(values, mean, deviation, distribution.starts_with("uniform"));
    }
    if (worse(worst, error) > worst) note = expected["name"].text() + ": " + distribution;
    worst = worse(worst, error);
  }
  const bool passed = worst <= kStandardErrors;
  return {name, "initial weights, standard errors", worst, kStandardErrors, passed, passed ? "" : note};
}

}  // namespace settrain
