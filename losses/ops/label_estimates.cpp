#include "losses/ops/label_estimates.h"

#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <cmath>

#include "src/core/error.h"
#include "src/core/random.h"
#include "src/core/shape.h"

namespace settrain {
namespace {

double logit(double p) {
  return std::log(p / (1 - p));
}

}  // namespace

const at::Tensor& LabelEstimates::logits() {
  if (!logits_.defined()) draw();
  return logits_;
}

void LabelEstimates::draw() {
  logits_ = at::empty({static_cast<int64_t>(ids_.size()), num_classes_}, at::kFloat);
  const double largest = logit(0.6);
  float* row = logits_.mutable_data_ptr<float>();
  for (size_t i = 0; i < ids_.size(); ++i, row += num_classes_) {
    row_of_.emplace(ids_[i], static_cast<int64_t>(i));
    for (int64_t j = 0; j < num_classes_; j += 2) {
      const auto words =
          random_words(seed_, Stream::kLabelEstimates, static_cast<uint32_t>(ids_[i]), static_cast<uint32_t>(j / 2));
      row[j] = static_cast<float>(largest * (2 * unit_double(words[0], words[1]) - 1));
      if (j + 1 < num_classes_) row[j + 1] = static_cast<float>(largest * (2 * unit_double(words[2], words[3]) - 1));
    }
    row[labels_[i]] = static_cast<float>(logit(0.995));
  }
}

at::Tensor LabelEstimates::take(const at::Tensor& sample_ids, const at::Tensor& like) {
  check_shape("sample_ids", sample_ids.sizes(), {like.size(0)});
  const at::Tensor& all = logits();
  Taken taken{at::empty({sample_ids.size(0)}, at::kLong), {}};
  const at::Tensor ids = sample_ids.contiguous();
  for (int64_t i = 0; i < ids.size(0); ++i) {
    const auto found = row_of_.find(ids.const_data_ptr<int64_t>()[i]);
    if (found == row_of_.end()) {
      throw ShapeError(fmt::format("sample_ids[{}]: expected the id of a training sample, got {}", i,
                                   ids.const_data_ptr<int64_t>()[i]));
    }
    taken.rows.mutable_data_ptr<int64_t>()[i] = found->second;
  }
  const c10::NoGradGuard no_grad;
  taken.logits = all.index_select(0, taken.rows).to(like.options()).requires_grad_();
  taken_.push_back(taken);
  return taken.logits;
}

void LabelEstimates::update(double lr) {
  const c10::NoGradGuard no_grad;
  for (const Taken& taken : taken_) {
    if (!taken.logits.grad().defined()) continue;
    logits_.index_add_(0, taken.rows, taken.logits.grad().to(logits_.options()), -lr);
  }
  taken_.clear();
}

}  // namespace settrain
