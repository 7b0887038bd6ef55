// The shares of the classes that a trained model's softmax assumes, which its loss and sampler decide.
#pragma once

#include <vector>

#include "losses/loss.h"
#include "src/train/experiment.h"

namespace settrain {

/// [classes] above 0, of any sum: r_y / pi_y^tau, where class y has the share r_y of the draws of the last epoch
/// (class_probabilities()) and pi_y of the training images, and tau is the loss' (LossEntry::prior_tau). That is the
/// training share for cross-entropy, and the same for all classes for balanced_softmax, for logit_adjusted with tau 1,
/// and for cross-entropy with data.sampler: class_balanced. A class without training images counts as half an image.
/// Throws ConfigError for losses that estimate no P(y | x), such as hinges, and for class weights.
std::vector<double> shares_of_model(const Experiment& run, const LossRegistry& losses);

}  // namespace settrain
