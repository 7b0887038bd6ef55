#include "models/small_resnet.h"

#include <string>

#include "models/residual_blocks.h"
#include "src/core/shape.h"

namespace settrain {
namespace {

std::shared_ptr<Stage> make_small_stage(int64_t blocks, int64_t in, int64_t out, int64_t stride) {
  auto stage = std::make_shared<Stage>();
  for (int64_t b = 0; b < blocks; ++b) {
    stage->add(std::to_string(b),
               std::make_shared<BasicBlock>(b == 0 ? in : out, out, b == 0 ? stride : 1, Shortcut::kPad));
  }
  return stage;
}

}  // namespace

config::Keys SmallResNetOptions::keys() {
  return {config::key("width", &SmallResNetOptions::width, 16,
                      "Channels of the first stage; the second has twice, the third four times as many.")
              .at_least(1)
              .at_most(1024)
              .in("channels")};
}

SmallResNet::SmallResNet(int64_t depth, int64_t width, const ModelOptions& options, const ModelContext& context)
    : channels_(context.channels) {
  int64_t channels = width;
  conv1_ = register_module("conv1", std::make_shared<Convolution>(context.channels, channels, 3));
  bn1_ = register_module("bn1", std::make_shared<BatchNorm>(channels));
  for (size_t s = 0; s < stages_.size(); ++s) {
    const int64_t out = width << s;
    stages_[s] = register_module("layer" + std::to_string(s + 1),
                                 make_small_stage((depth - 2) / 6, channels, out, s == 0 ? 1 : 2));
    channels = out;
  }
  fc_ = std::make_unique<Heads>(*this, "fc", options, channels, context.num_classes);
}

ModelOutput SmallResNet::forward(const at::Tensor& images) {
  check_shape("images", images.sizes(), {kAnySize, channels_, kAnySize, kAnySize});
  at::Tensor x = rectified(bn1_->forward(conv1_->forward(images)));
  for (const auto& stage : stages_) x = stage->forward(x);
  return (*fc_)(global_average(x));
}

}  // namespace settrain
