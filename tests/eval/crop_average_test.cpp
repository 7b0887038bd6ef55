#include "src/eval/crop_average.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <cmath>
#include <stdexcept>

#include "tests/support/catch2.h"

using namespace settrain;

namespace {

constexpr int64_t kImages = 3, kCrops = 4, kClasses = 6;

at::Tensor scores() {
  return at::randn({kImages * kCrops, kClasses}, at::detail::createCPUGenerator(2));
}

// [images, classes] mean over the crops.
at::Tensor crop_mean(const at::Tensor& values) {
  return values.view({kImages, kCrops, kClasses}).mean(1);
}

// The probability of every class to be in a set of `k`, by listing all sets.
at::Tensor by_enumeration(const at::Tensor& scaled, int64_t k) {
  at::Tensor p = at::zeros_like(scaled);
  for (int64_t row = 0; row < scaled.size(0); ++row) {
    double total = 0;
    for (int64_t set = 0; set < 1 << kClasses; ++set) {
      if (__builtin_popcountll(static_cast<unsigned long long>(set)) != k) continue;
      double sum = 0;
      for (int64_t c = 0; c < kClasses; ++c) sum += set >> c & 1 ? scaled[row][c].item<double>() : 0;
      total += std::exp(sum);
      for (int64_t c = 0; c < kClasses; ++c) {
        if (set >> c & 1) p[row][c] += std::exp(sum);
      }
    }
    p[row] /= total * static_cast<double>(k);
  }
  return p;
}

}  // namespace

TEST_CASE("scores are averaged as they are") {
  const at::Tensor average = average_crops(scores(), kCrops, {CropAverage::kScores, 1, 5.0});
  CHECK(average.scalar_type() == at::kFloat);
  CHECK(at::allclose(average, crop_mean(scores()), 1e-6, 1e-6));
}

TEST_CASE("the softmax of what comes out is the mean of the crops' softmax") {
  for (const double scale : {1.0, 40.0}) {
    const at::Tensor average = average_crops(scores(), kCrops, {CropAverage::kSoftmax, 1, scale});
    CHECK(at::allclose(at::softmax(average.mul(scale), 1), crop_mean(at::softmax(scores().mul(scale), 1)), 1e-4, 1e-6));
  }
}

TEST_CASE("top-k probabilities are those of all sets, in evaluation too") {
  const c10::InferenceMode inference;
  for (const int64_t k : {1, 2, 5}) {
    for (const double scale : {1.0, 7.0}) {
      const at::Tensor average = average_crops(scores(), kCrops, {CropAverage::kTopk, k, scale});
      const at::Tensor expected = crop_mean(by_enumeration(scores().to(at::kDouble).mul(scale), k));
      CHECK(at::allclose(at::softmax(average.to(at::kDouble).mul(scale), 1), expected, 1e-4, 1e-7));
    }
  }
  const at::Tensor top1 = average_crops(scores(), kCrops, {CropAverage::kTopk, 1, 1.0});
  CHECK(at::allclose(top1, average_crops(scores(), kCrops, {CropAverage::kSoftmax, 1, 1.0}), 1e-5, 1e-5));
  CHECK_THROWS_AS(average_crops(scores(), kCrops, {CropAverage::kTopk, kClasses, 1.0}), std::invalid_argument);
}

TEST_CASE("certain crops stay finite") {
  const at::Tensor certain = at::zeros({kCrops, kClasses}).index_fill(1, at::tensor({2}, at::kLong), 1e4F);
  for (const CropAverage::Kind kind : {CropAverage::kSoftmax, CropAverage::kTopk}) {
    const at::Tensor average = average_crops(certain, kCrops, {kind, 2, 1.0});
    CHECK(average.isfinite().all().item<bool>());
    CHECK(average.argmax().item<int64_t>() == 2);
  }
}
