#include "src/inference/embed.h"

#include <ATen/ops/isfinite.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

#include "models/model.h"
#include "src/core/error.h"
#include "src/core/interrupt.h"
#include "src/core/log.h"
#include "src/core/text.h"

namespace settrain {
Loader embedding_loader(const TrainedModel& model, const Dataset& dataset, const Split& split) {
  LoaderContext context = model.loader;
  context.options.on_bad_image = "skip";
  context.skipped = std::make_shared<SkippedImages>(/*logs=*/false);
  const Pipeline pipeline(context.pipeline, dataset.height, dataset.width, ViewUse::kEvaluation);
  const ModelCard& card = model.card;
  if (dataset.channels != card.channels || pipeline.height() != card.input_height ||
      pipeline.width() != card.input_width) {
    throw DataError(fmt::format(
        "the images of {} become {} x {} pixels of {} channels, and the model takes {} x {} of {}", dataset.name,
        pipeline.height(), pipeline.width(), dataset.channels, card.input_height, card.input_width, card.channels));
  }
  return evaluation_loader(dataset, split, context);
}

Embeddings embed(Model& model, const ComputePolicy& policy, Loader& loader,
                 const std::function<std::string(int64_t id)>& name, ProgressBar& bar) {
  c10::InferenceMode inference;
  Embeddings result;
  const auto leave_out = [&](const std::string& reason) {
    log::warning("[embed] left out: " + printable(reason));
    ++result.left_out;
  };
  Progress progress;
  progress.stage = "[embed]";
  progress.total = loader.size();
  loader.start_epoch(0);
  for (Batch batch; loader.next(batch);) {
    for (const SkippedImage& image : batch.skipped) leave_out(image.reason);
    if (batch.size() > 0) {
      const at::Tensor features = forward(model, batch.images, policy).features.to(at::kCPU, at::kFloat);
      if (features.dim() != 2) throw DataError("the head of this model sees pixels, and no row of features");
      const at::Tensor rows = features.contiguous(), finite = at::isfinite(rows).all(1);
      result.width = rows.size(1);
      result.features.reserve(static_cast<size_t>(loader.size() * result.width));
      for (int64_t i = 0; i < batch.size(); ++i) {
        const int64_t id = batch.sample_ids.const_data_ptr<int64_t>()[i];
        if (!finite.const_data_ptr<bool>()[i]) {
          leave_out(fmt::format("{}: its features are not finite", name(id)));
          continue;
        }
        const float* const row = rows.const_data_ptr<float>() + i * result.width;
        result.features.insert(result.features.end(), row, row + result.width);
        result.ids.push_back(id);
        result.labels.push_back(batch.labels.const_data_ptr<int64_t>()[i]);
      }
    }
    progress.done += batch.size() + std::ssize(batch.skipped);
    bar.update(progress);
    throw_if_interrupted();
  }
  bar.hide();
  if (result.ids.empty()) throw DataError("no image has features; the log says why");
  return result;
}

}  // namespace settrain
