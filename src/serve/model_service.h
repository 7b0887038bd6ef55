// A trained model that answers requests.
#pragma once

#include <span>
#include <string>

#include "src/inference/prediction_json.h"
#include "src/inference/set_maker.h"
#include "src/inference/trained_model.h"
#include "src/serve/batch_scorer.h"
#include "src/serve/http/service_metrics.h"
#include "src/serve/http/upload.h"
#include "src/serve/image_reader.h"
#include "src/serve/serve.h"

namespace settrain {

class ModelService {
 public:
  /// Throws what the model throws, see BatchScorer.
  ModelService(const TrainedModel& model, const SetMaker& maker, const ServeOptions& options, ServiceMetrics& metrics);

  /// The sets for one image, or for several of one specimen, as JSON (docs/serving.md). Thread-safe. What randomised
  /// rules draw follows from the images' bytes, so that the same images have the same answer. Throws HttpError.
  std::string answer(std::span<const Upload> images);

  /// What answers, as JSON (docs/serving.md).
  std::string describe() const;

 private:
  at::Tensor scores_of(std::span<const Upload> images);

  const TrainedModel& model_;
  const SetMaker& maker_;
  ProbabilityKind kind_;
  SetsAsJson json_;
  ServeOptions options_;
  ServiceMetrics& metrics_;
  ImageReader reader_;
  BatchScorer scorer_;
};

}  // namespace settrain
