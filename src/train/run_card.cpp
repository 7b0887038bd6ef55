#include "src/train/run_card.h"

namespace settrain {

ModelCard card_of(const Experiment& run) {
  const Dataset& data = run.dataset;
  return {.dataset = data.name,
          .class_names = data.class_names,
          .class_keys = data.class_keys,
          .superclass_names = data.superclass_names,
          .superclass_of = data.superclass_of,
          .train_counts = run.train_counts,
          .channels = run.input.channels,
          .input_height = run.input.height,
          .input_width = run.input.width,
          .image_height = data.height,
          .image_width = data.width,
          .mean = run.loader.normalisation.mean,
          .std = run.loader.normalisation.std,
          .score_scale = run.loss->score_scale(),
          .is_sigmoid = run.class_facts.probability == ProbabilityKind::kSigmoid,
          .head = run.config.get<std::string>("model.head")};
}

}  // namespace settrain
