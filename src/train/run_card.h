// What a checkpoint says of its model for those who have no training data.
#pragma once

#include "src/formats/model_card.h"
#include "src/train/experiment.h"

namespace settrain {

ModelCard card_of(const Experiment& run);

}  // namespace settrain
