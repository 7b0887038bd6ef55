#include "models/adapters.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <cmath>
#include <optional>

#include "models/cost.h"

namespace settrain {
namespace {

/// up(down(x)) times a factor, beside a linear layer: Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models"
/// (2022), section 4.1. At first `up` is zero.
///
/// Names: down [rank, in], up [out, rank], and the factor, scale [].
class LoraLayer : public Adapter {
 public:
  LoraLayer(int64_t in, int64_t out, const AdapterOptions& options)
      : down_(register_parameter("down", uniform_values({options.rank, in}, 1 / std::sqrt(static_cast<double>(in))))),
        up_(register_parameter("up", at::zeros({out, options.rank}, CostCounter::device()))),
        scale_(register_buffer("scale", at::full({}, options.alpha / static_cast<double>(options.rank),
                                                 at::TensorOptions(CostCounter::device()).dtype(at::kFloat)))) {}

  void prepare(InferenceForm form) override {
    Layer::prepare(form);
    packed_down_.reset();
    packed_up_.reset();
    if (!is_prepared()) return;
    const c10::NoGradGuard no_grad;
    const at::ScalarType type = packed_type(form, down_);
    packed_down_.emplace(down_, at::zeros(down_.size(0), down_.options()), type);
    packed_up_.emplace(up_ * scale_, at::zeros(up_.size(0), up_.options()), type);
  }

  at::Tensor forward(const at::Tensor& x) override {
    if (!packed_down_) return linear_map(linear_map(x, down_, {}), up_, {}) * scale_;
    return (*packed_up_)((*packed_down_)(x, Activation::kNone, {}), Activation::kNone, {});
  }

 private:
  at::Tensor down_, up_, scale_;
  std::optional<PackedLinear> packed_down_, packed_up_;
};

/// scale * up(relu(down(x))), beside a block's MLP: Chen et al., "AdaptFormer" (2022), equations 4 and 5. At
/// first `up` is zero.
///
/// Names: down, up.
class AdaptFormer : public Adapter {
 public:
  AdaptFormer(int64_t features, const AdapterOptions& options) : scale_(options.scale) {
    const double bound = 1 / std::sqrt(static_cast<double>(features));
    down_ = register_module("down", std::make_shared<LinearLayer>(uniform_values({options.rank, features}, bound),
                                                                  at::zeros(options.rank, CostCounter::device())));
    up_ =
        register_module("up", std::make_shared<LinearLayer>(at::zeros({features, options.rank}, CostCounter::device()),
                                                            at::zeros(features, CostCounter::device())));
  }

  at::Tensor forward(const at::Tensor& x) override { return up_->forward(rectified(down_->forward(x))) * scale_; }

 private:
  double scale_;
  std::shared_ptr<Layer> down_, up_;
};

}  // namespace

std::shared_ptr<Layer> lora_layer(int64_t in, int64_t out, const AdapterOptions& options) {
  return std::make_shared<LoraLayer>(in, out, options);
}

std::shared_ptr<Layer> adaptformer_layer(int64_t features, const AdapterOptions& options) {
  return std::make_shared<AdaptFormer>(features, options);
}

}  // namespace settrain
