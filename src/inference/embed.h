// `settrain embed`: the features of images, which the head of a model sees.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "datasets/feature_file.h"
#include "src/core/progress_bar.h"
#include "src/inference/trained_model.h"

namespace settrain {

/// The features of the images that have some, in the images' order.
struct Embeddings : FeatureArrays {
  std::vector<int64_t> ids{};  // [images] Split::ids
  int64_t left_out = 0;        // images that cannot be read, or have features that are not finite
};

/// Batches of the centre crops of a split's images, as the model takes them; they leave out images that cannot be read.
/// Throws DataError where the images have another size or other channels than the model takes.
Loader embedding_loader(const TrainedModel& model, const Dataset& dataset, const Split& split);

/// The features of the loader's images, ModelOutput::features, with their ids and labels, by a model in evaluation
/// mode. Logs a warning for each image that is left out; `name` gives an image's name by its id. Throws DataError where
/// no image is left, or where the model's head sees pixels, and Interrupted after the current batch where a signal
/// asked to stop.
Embeddings embed(Model& model, const ComputePolicy& policy, Loader& loader,
                 const std::function<std::string(int64_t id)>& name, ProgressBar& bar);

}  // namespace settrain
