// A loss with random scores, to be measured.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "losses/loss.h"
#include "losses/ops/noised_hinge.h"
#include "src/config/config.h"

namespace settrain {

/// A loss, and the batch that it is measured on.
struct LossCase {
  std::string loss;
  LossMethod method = LossMethod::kFast;
  int64_t batch = 256, classes = 1000;
  int64_t k = 5, draws = 5;             // for losses with a k, and with noise
  double epsilon = 0.2, scores_sd = 3;  // in units of scores

  static constexpr const char* kReference = "cross_entropy";  // other losses are compared with it

  bool is_reference() const { return loss == kReference; }
  bool operator==(const LossCase&) const = default;
};

/// A loss of the registry, built as a config would build it, with scores, labels and all that it requires: made up by a
/// fixed seed, so that two cases of one size see the same scores but for their spread. The classes have a long tail of
/// training images. Where a loss takes the scores of a normalised head, they are N(0, scores_sd^2) after its own scale,
/// and epsilon too is divided by that.
class LossSubject {
 public:
  /// Throws ConfigError where the loss does not take these numbers.
  LossSubject(const LossRegistry& registry, const LossCase& what, at::Device device);

  /// Takes away the gradients of the last step, computes the loss and the gradient of its sum, as a training step does,
  /// and moves what the loss itself owns.
  void step();

  /// The two halves of it.
  LossValue forward();
  void backward(const LossValue& value);

  /// The most memory of a step, over that of the scores.
  double memory();

  /// For how many classes of a row noise is drawn, on average, where the loss leaves some out.
  std::optional<double> drawn_classes() const;

  /// Whether the loss draws noise.
  static bool draws_noise(const LossEntry& entry);

  const LossInput& input() const { return input_; }

 private:
  void forget_gradients();

  std::unique_ptr<Loss> loss_;
  LossInput input_;
  std::optional<SampledTopkOptions> pruned_;  // where the loss leaves classes out
};

/// The resolved section `loss` of that case, with further settings "loss.key=value".
config::Config loss_config(const LossRegistry& registry, const LossCase& what,
                           const std::vector<std::string>& settings = {});

}  // namespace settrain
