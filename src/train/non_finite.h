// The message for a loss that is not finite.
#pragma once

#include <string>

#include "losses/loss.h"

namespace settrain {

class Model;
struct StepNumber;

/// Says where the numbers went wrong: step, learning rate, samples, largest |score|, and the
/// first tensor that is not finite, of the parameters in the model's order, then the features, then the scores.
std::string non_finite_message(const Model& model, const LossInput& input, const LossValue& value,
                               const StepNumber& number);

/// Throws NumericalError, naming the first, where a parameter, a batch statistic or a tensor of the loss is not finite
/// after so many steps.
void check_finite(const Model& model, Loss& loss, int64_t step);

}  // namespace settrain
