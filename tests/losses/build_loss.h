// Losses for tests, built as the program builds them.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "losses/make_loss.h"
#include "src/config/load.h"
#include "tests/support/builtin_losses.h"

namespace settrain::test {

/// counts[j] training images of class j, whose ids are 0, 1, 2, ... in the order of the classes.
inline LossContext context_of_counts(const std::vector<int64_t>& counts) {
  LossContext context{
      .num_classes = std::ssize(counts), .class_counts = counts, .train_ids = {}, .train_labels = {}, .seed = 4};
  for (size_t j = 0; j < counts.size(); ++j) {
    context.train_labels.insert(context.train_labels.end(), static_cast<size_t>(counts[j]), static_cast<int64_t>(j));
  }
  context.train_ids.resize(context.train_labels.size());
  std::iota(context.train_ids.begin(), context.train_ids.end(), 0);
  return context;
}

/// `classes` classes of 1, 4, 9, ..., 100, 21, 44, ... training images: the last two digits of a square, or 100.
inline LossContext context_of(int64_t classes) {
  std::vector<int64_t> counts;
  for (int64_t j = 1; j <= classes; ++j) counts.push_back((j * j - 1) % 100 + 1);
  return context_of_counts(counts);
}

/// Whether a shift of all scores changes nothing. Binary losses have a zero.
inline bool is_relative(const std::string& loss) {
  for (const char* binary :
       {"assume_negative", "bce_positive", "bce_multilabel", "role", "expected_positive_regularisation"}) {
    if (loss == binary) return false;
  }
  return true;
}

/// The loss `name` with the settings "key=value" of its section.
inline std::unique_ptr<Loss> build_loss(const std::string& name, const LossContext& context,
                                        const std::vector<std::string>& settings = {}) {
  std::vector<std::string> overrides{"loss.name=" + name};
  for (const std::string& setting : settings) overrides.push_back("loss." + setting);
  const auto config = config::load({{loss_section(builtin_losses())}, {}}, {}, overrides);
  return make_loss(builtin_losses(), config, context);
}

/// `noise` [batch, draws, classes], or undefined for the loss' own.
inline LossInput input_of(const at::Tensor& scores, const at::Tensor& labels, const at::Tensor& noise = {}) {
  LossInput input;
  input.output.scores = scores;
  input.labels = labels;
  input.sample_ids = at::arange(labels.size(0), at::kLong);
  input.noise_key = {.seed = 4, .step = 10, .first_position = 0};
  if (noise.defined()) input.noise = noise;
  return input;
}

}  // namespace settrain::test
