// A head without a body, on features that a network made before.
#include "models/entries.h"
#include "models/heads.h"
#include "models/layers.h"
#include "models/model.h"

namespace settrain {
namespace {

struct HeadOnlyOptions {
  double dropout = 0;

  static config::Keys keys() { return {dropout_key(&HeadOnlyOptions::dropout, 0.0)}; }
};

/// state_dict names: head.weight, head.bias.
class HeadOnly : public Model {
 public:
  HeadOnly(double dropout, const ModelOptions& options, const ModelContext& context)
      : dropout_(dropout), head_(*this, "head", options, context.width, context.num_classes) {}

  /// Images of one row, [batch, 1, 1, features], are features too.
  at::Tensor features(const at::Tensor& images) override { return images.flatten(1); }
  ModelOutput classify(const at::Tensor& features) override {
    return head_(is_training() ? randomly_dropped(features, dropout_) : features);
  }

 private:
  double dropout_;
  Heads head_;
};

}  // namespace

std::vector<ModelEntry> head_only_entries() {
  return {{"head_only",
           "A head alone, without a body: for data.name features.",
           HeadOnlyOptions::keys(),
           [](const config::Config& config, const ModelContext& context) -> std::shared_ptr<Model> {
             check_images(context.channels == 1 && context.height == 1, kHeadOnly, "features (data.name: features)",
                          context);
             return std::make_shared<HeadOnly>(config.read<HeadOnlyOptions>("model").dropout,
                                               config.read<ModelOptions>("model"), context);
           },
           {100, 1, 1, 1280}}};
}

}  // namespace settrain
