#include "src/check/initial_weights.h"

#include <algorithm>
#include <cmath>

#include "models/model.h"
#include "src/check/json_place.h"

namespace settrain {
namespace {

// Of some hundred parameters, all drawn from one seed: a right one is beyond this once in a million builds.
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
  return is_other ? INFINITY : std::max(of_mean, of_deviation);
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
      // Columns of length 1 have other ends, and the deviation that follows from their length.
      const bool scaled = distribution.find("scaled to norm 1") != std::string::npos;
      const bool uniform = distribution.starts_with("uniform");
      const at::Tensor values = parameter->detach().to(at::kDouble);
      error = scaled ? (values.norm(2, 0) - 1).abs().max().item<double>() / 1e-6
                     : standard_errors(values, mean, deviation, uniform);
    }
    if (error > worst) {
      worst = error;
      note = expected["name"].text() + ": " + distribution;
    }
  }
  const bool passed = worst <= kStandardErrors;
  return {name, "initial weights, standard errors", worst, kStandardErrors, passed, passed ? "" : note};
}

}  // namespace settrain
