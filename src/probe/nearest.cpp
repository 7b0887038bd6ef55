#include "src/probe/nearest.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace settrain {
namespace {

constexpr int64_t kProductsPerBlock = int64_t{1} << 25;  // 128 MiB
constexpr int64_t kRowsOfDoubles = 2048;                 // test images at a time, where they are float64
constexpr float kNoScore = -std::numeric_limits<float>::infinity();

// [images, width] of length 1; zero vectors stay zero.
at::Tensor unit_rows(const at::Tensor& rows) {
  const at::Tensor norm = at::linalg_vector_norm(rows, 2, {1}, /*keepdim=*/true, at::kDouble);
  return rows.div(at::where(norm.eq(0), at::ones_like(norm), norm).to(rows.scalar_type()));
}

// The distance of two vectors in float64; squared, if Euclidean.
double exact_distance(const float* a, const float* b, int64_t width, Distance distance) {
  double first = 0, second = 0, product = 0;
  if (distance == Distance::kEuclidean) {
    for (int64_t i = 0; i < width; ++i) {
      const double difference = static_cast<double>(a[i]) - b[i];
      product += difference * difference;
    }
    return product;
  }
  for (int64_t i = 0; i < width; ++i) {
    first += static_cast<double>(a[i]) * a[i];
    second += static_cast<double>(b[i]) * b[i];
    product += static_cast<double>(a[i]) * b[i];
  }
  return first == 0 || second == 0 ? 1 : 1 - product / std::sqrt(first * second);
}

// Finds the nearest training images of one test image after the other.
class Search {
 public:
  Search(int64_t neighbours, const std::vector<float>& offsets, const std::vector<float>& errors)
      : neighbours_(static_cast<size_t>(neighbours)), offsets_(offsets), errors_(errors) {}

  // `products`: of the test image with every training image. `error`: the part of the rounding that the test image
  // brings. exact(j) is the distance in float64. Returns the nearest images, the nearest first.
  template <class Exact>
  const std::vector<std::pair<double, int64_t>>& nearest(const float* products, float error, const Exact& exact) {
    const auto images = static_cast<int64_t>(offsets_.size());
    const auto rounded = [&](int64_t j) { return offsets_[j] - 2 * products[j]; };
    // A heap of the smallest upper bounds: at least `neighbours` images are not farther than its largest.
    bounds_.clear();
    for (int64_t j = 0; j < images; ++j) {
      const float bound = rounded(j) + errors_[j];
      if (bounds_.size() < neighbours_) {
        bounds_.push_back(bound);
        std::push_heap(bounds_.begin(), bounds_.end());
      } else if (bound < bounds_.front()) {
        std::pop_heap(bounds_.begin(), bounds_.end());
        bounds_.back() = bound;
        std::push_heap(bounds_.begin(), bounds_.end());
      }
    }
    const float limit = bounds_.front() + 2 * error;
    found_.clear();
    for (int64_t j = 0; j < images; ++j) {
      if (!(rounded(j) - errors_[j] > limit)) found_.emplace_back(exact(j), j);
    }
    std::partial_sort(found_.begin(), found_.begin() + static_cast<int64_t>(neighbours_), found_.end());
    found_.resize(neighbours_);
    return found_;
  }

 private:
  size_t neighbours_;
  const std::vector<float>&offsets_, &errors_;  // of the training images
  std::vector<float> bounds_;
  std::vector<std::pair<double, int64_t>> found_;
};

}  // namespace

NeighbourScores nearest_neighbours(const LabelledFeatures& train, const at::Tensor& test, int64_t classes,
                                   int64_t neighbours, Distance distance,
                                   const std::function<void(int64_t)>& after_block) {
  const int64_t images = train.features.size(0), width = train.features.size(1);
  const bool is_euclidean = distance == Distance::kEuclidean;
  // Distances are the same around any centre, and the products' rounding errors are least around the mean.
  const at::Tensor centre = train.features.mean(0, /*keepdim=*/true, at::kDouble).to(at::kFloat);
  const auto prepared = [&](const at::Tensor& rows) { return is_euclidean ? rows.sub(centre) : unit_rows(rows); };
  const at::Tensor near = prepared(train.features);
  const auto squares = [](const at::Tensor& rows) { return rows.square().sum(1, /*keepdim=*/false, at::kDouble); };
  // A product of `width` terms in float32 is off by at most width / 2^24 times the product of the lengths, which is at
  // most half the sum of their squares; the other steps add a few roundings.
  const double rounding = static_cast<double>(width + 16) * std::ldexp(1.0, -23);
  std::vector<float> offsets(images), errors(images);
  const at::Tensor near_squares = squares(near).contiguous();
  for (int64_t j = 0; j < images; ++j) {
    const double square = near_squares.const_data_ptr<double>()[j];
    offsets[j] = is_euclidean ? static_cast<float>(square) : 0;
    errors[j] = static_cast<float>(rounding * square);
  }
  NeighbourScores scores{at::full({test.size(0), classes}, kNoScore, at::kFloat),
                         at::full({test.size(0), classes}, kNoScore, at::kFloat)};
  const auto* const labels = train.labels.const_data_ptr<int64_t>();
  const auto* const train_rows = train.features.const_data_ptr<float>();
  const auto* const test_rows = test.const_data_ptr<float>();
  auto* const nearest = scores.nearest.mutable_data_ptr<float>();
  auto* const votes = scores.votes.mutable_data_ptr<float>();
  const int64_t block = std::max<int64_t>(1, kProductsPerBlock / images);
  for (int64_t first = 0; first < test.size(0); first += block) {
    const int64_t rows = std::min(block, test.size(0) - first);
    const at::Tensor asked = prepared(test.narrow(0, first, rows));
    const at::Tensor asked_squares = squares(asked).contiguous();
    const at::Tensor products = at::mm(asked, near.t()).contiguous();
    at::parallel_for(0, rows, 1, [&](int64_t begin, int64_t end) {
      Search search(neighbours, offsets, errors);
      for (int64_t i = begin; i < end; ++i) {
        const auto error = static_cast<float>(rounding * asked_squares.const_data_ptr<double>()[i]);
        const float* row = test_rows + (first + i) * width;
        const auto& found = search.nearest(products.const_data_ptr<float>() + i * images, error, [&](int64_t j) {
          return exact_distance(row, train_rows + j * width, width, distance);
        });
        nearest[(first + i) * classes + labels[found.front().second]] = 0;
        for (const auto& [unused, j] : found) {
          float& count = votes[(first + i) * classes + labels[j]];
          count = std::max(count, 0.0F) + 1;
        }
      }
    });
    after_block(first + rows);
  }
  return scores;
}

at::Tensor class_mean_scores(const LabelledFeatures& train, const at::Tensor& test, int64_t classes,
                             Distance distance) {
  const int64_t images = train.features.size(0), width = train.features.size(1);
  at::Tensor means = at::zeros({classes, width}, at::kDouble);
  std::vector<int64_t> counts(classes);
  const auto* const labels = train.labels.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < images; ++i) ++counts[labels[i]];
  for (int64_t first = 0; first < images; first += kRowsOfDoubles) {
    const int64_t rows = std::min(kRowsOfDoubles, images - first);
    means.index_add_(0, train.labels.narrow(0, first, rows), train.features.narrow(0, first, rows).to(at::kDouble));
  }
  for (int64_t c = 0; c < classes; ++c) means.select(0, c).div_(static_cast<double>(std::max<int64_t>(1, counts[c])));
  const bool is_euclidean = distance == Distance::kEuclidean;
  const at::Tensor centre = train.features.mean(0, /*keepdim=*/true, at::kDouble);
  means = is_euclidean ? means - centre : unit_rows(means);
  const at::Tensor mean_squares = means.square().sum(1);
  at::Tensor scores = at::empty({test.size(0), classes}, at::kDouble);
  for (int64_t first = 0; first < test.size(0); first += kRowsOfDoubles) {
    const int64_t rows = std::min(kRowsOfDoubles, test.size(0) - first);
    const at::Tensor given = test.narrow(0, first, rows).to(at::kDouble);
    const at::Tensor asked = is_euclidean ? given - centre : unit_rows(given);
    at::Tensor block = at::mm(asked, means.t());
    // The square of the test image's own length is the same for every class and is left out.
    block = is_euclidean ? block.mul_(2).sub_(mean_squares) : block.sub_(1);
    scores.narrow(0, first, rows).copy_(block);
  }
  for (int64_t c = 0; c < classes; ++c) {
    if (counts[c] == 0) scores.select(1, c).fill_(static_cast<double>(kNoScore));
  }
  return scores;
}

}  // namespace settrain
