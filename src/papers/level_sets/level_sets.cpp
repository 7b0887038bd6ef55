#include "src/papers/level_sets/level_sets.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "losses/make_loss.h"
#include "src/config/load.h"

namespace settrain {
namespace {

const double kHeight = std::sqrt(3.0) / 2;

double least(const PlaneScores& scores) {
  return *std::min_element(scores.begin(), scores.end());
}

// The label is the rarest class, so that its margin is loss.max_margin in losses with margins by class.
const std::vector<int64_t> kClassCounts{16, 1, 16};

// The one place where a figure's loss is built.
std::unique_ptr<Loss> make_panel_loss(const LossRegistry& registry, const LevelSetPanel& panel) {
  std::vector<std::string> overrides{"loss.name=" + panel.loss};
  for (const std::string& setting : panel.settings) overrides.push_back("loss." + setting);
  const config::Config config = config::load({{loss_section(registry)}, {}}, {}, overrides);
  return make_loss(registry, config,
                   {.num_classes = kPlaneClasses, .class_counts = kClassCounts, .train_ids = {}, .train_labels = {}});
}

// [points, 3] float64 scores of the grid's points near the triangle, and which points these are.
at::Tensor scores_near(const PlaneGrid& grid, std::vector<size_t>& points) {
  const at::Tensor scores = at::empty({grid.rows * grid.columns, kPlaneClasses}, at::kDouble);
  double* next = scores.mutable_data_ptr<double>();
  for (int64_t row = 0; row < grid.rows; ++row) {
    for (int64_t column = 0; column < grid.columns; ++column) {
      const PlaneScores here = plane_scores(grid.at(column, row));
      if (!grid.is_near(here)) continue;
      points.push_back(static_cast<size_t>(row * grid.columns + column));
      next = std::copy(here.begin(), here.end(), next);
    }
  }
  return scores.narrow(0, 0, static_cast<int64_t>(points.size()));
}

}  // namespace

PlaneScores plane_scores(PlanePoint point) {
  const double top = point.y / kHeight, right = point.x - top / 2;
  return {kPlaneTotal * (1 - top - right), kPlaneTotal * top, kPlaneTotal * right};
}

bool in_triangle(const PlaneScores& scores) {
  return least(scores) >= -1e-12;
}

PlaneGrid::PlaneGrid(int64_t size) : columns(size), rows(1 + std::lround(kHeight * static_cast<double>(size - 1))) {}

PlanePoint PlaneGrid::at(int64_t column, int64_t row) const {
  return {static_cast<double>(column) / static_cast<double>(columns - 1),
          kHeight * static_cast<double>(row) / static_cast<double>(rows - 1)};
}

bool PlaneGrid::is_near(const PlaneScores& scores) const {
  // A cell further to the side and one further down make one and a half.
  return least(scores) >= -2 * kPlaneTotal / static_cast<double>(columns - 1);
}

std::string LevelSetPanel::parameters() const {
  std::string text;
  for (const std::string& setting : settings) {
    const size_t equals = setting.find('=');
    text += (text.empty() ? "" : ", ") + setting.substr(0, equals) + ": " + setting.substr(equals + 1);
  }
  return text;
}

LevelSetValues level_set_values(const LossRegistry& registry, const LevelSetPanel& panel, const PlaneGrid& grid,
                                const LevelSetDraws& draws) {
  const auto loss = make_panel_loss(registry, panel);
  std::vector<size_t> points;
  LossInput input;
  input.output.scores = scores_near(grid, points);
  input.labels = at::full({input.output.scores.size(0)}, kPlaneLabel, at::kLong);

  const config::Keys& keys = registry.at(panel.loss).keys;
  const bool is_noised =
      std::any_of(keys.begin(), keys.end(), [](const config::Key& key) { return key.name == "num_draws"; });
  const int64_t evaluations = is_noised ? draws.replications : 1;
  at::Tensor sum = at::zeros({input.labels.size(0)}, at::kDouble);
  for (int64_t step = 0; step < evaluations; ++step) {
    input.noise_key = {.seed = draws.seed, .step = step, .first_position = 0};
    sum.add_((*loss)(input).per_sample);
  }
  const at::Tensor mean = sum.div(static_cast<double>(evaluations));

  LevelSetValues values{
      std::vector<double>(static_cast<size_t>(grid.rows * grid.columns), std::numeric_limits<double>::quiet_NaN()),
      std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(), is_noised};
  for (size_t i = 0; i < points.size(); ++i) {
    const double here = mean.const_data_ptr<double>()[i];
    values.losses[points[i]] = here;
    const double* scores = input.output.scores.const_data_ptr<double>() + i * kPlaneClasses;
    if (!in_triangle({scores[0], scores[1], scores[2]})) continue;
    values.least = std::min(values.least, here);
    values.most = std::max(values.most, here);
  }
  return values;
}

}  // namespace settrain
