// The forms in which models answer that are no longer trained.
#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <limits>
#include <stdexcept>

#include "models/convolution_unit.h"
#include "models/entries.h"
#include "models/layers.h"
#include "models/model.h"
#include "models/named_tensors.h"
#include "tests/support/catch2.h"
#include "tests/support/tolerance.h"

namespace settrain {
namespace {

// Statistics and weights as training might leave them, so that folding them shows.
void make_uneven(torch::nn::Module& module) {
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : state_dict(module)) {
    if (name.ends_with("running_mean")) tensor.normal_(0, 0.2);
    if (name.ends_with("running_var")) tensor.uniform_(0.5, 1.5);
    if (name.ends_with("bias")) tensor.normal_(0, 0.1);
  }
}

TEST_CASE("a prepared unit computes what its convolution, norm and activation do") {
  const c10::InferenceMode inference;
  for (const Activation activation : {Activation::kNone, Activation::kRelu, Activation::kRelu6, Activation::kSilu,
                                      Activation::kHardSwish, Activation::kGelu}) {
    CAPTURE(static_cast<int>(activation));
    for (const ConvolutionKind kind : {ConvolutionKind::kTorchvision, ConvolutionKind::kTensorFlow}) {
      for (const int64_t groups : {1, 4, 8}) {
        at::manual_seed(3);
        torch::nn::Module owner;
        const ConvolutionUnit unit(owner, "conv", "norm", {.kind = kind}, {8, 16, 3, 2, groups, activation});
        make_uneven(owner);
        owner.eval();
        const at::Tensor x = 4 * at::randn({3, 8, 11, 14}), added = at::randn({3, 16, 6, 7});
        const at::Tensor expected = unit(x), expected_sum = unit.onto(added, x, 0);
        for (const auto& part : owner.children()) part->as<Layer>()->prepare(InferenceForm::kFast);
        CHECK(test::relative_error(unit(x), expected) <= network_tolerance(at::kFloat));
        CHECK(test::relative_error(unit.onto(added, x, 0), expected_sum) <= network_tolerance(at::kFloat));
        CHECK(test::relative_error(unit(x.contiguous(at::MemoryFormat::ChannelsLast)), expected) <=
              network_tolerance(at::kFloat));
      }
    }
  }
}

TEST_CASE("a prepared unit adds what has one channel, one pixel or one image") {
  const c10::InferenceMode inference;
  for (const int64_t channels : {1, 2, 17}) {
    for (const int64_t pixels : {1, 5}) {
      for (const int64_t images : {1, 2}) {
        CAPTURE(channels, pixels, images);
        at::manual_seed(3);
        torch::nn::Module owner;
        const ConvolutionUnit unit(owner, "conv", "norm", {}, {channels, channels, 3, 1, 1, Activation::kRelu});
        make_uneven(owner);
        owner.eval();
        const at::Tensor x = at::randn({images, channels, pixels, pixels}), added = at::randn_like(x);
        const at::Tensor expected = unit(x), expected_sum = unit.onto(added, x, 0);
        for (const auto& part : owner.children()) part->as<Layer>()->prepare(InferenceForm::kFast);
        for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
          const at::Tensor input = x.contiguous(format), summand = added.contiguous(format);
          CHECK(test::relative_error(unit(input), expected) <= network_tolerance(at::kFloat));
          CHECK(test::relative_error(unit.onto(summand, input, 0), expected_sum) <= network_tolerance(at::kFloat));
        }
      }
    }
  }
}

TEST_CASE("a prepared unit in double computes as one that is not prepared") {
  at::manual_seed(3);
  torch::nn::Module owner;
  const ConvolutionUnit unit(owner, "conv", "norm", {}, {8, 16, 3, 1, 1, Activation::kSilu});
  make_uneven(owner);
  owner.to(at::kDouble);
  owner.eval();
  const at::NoGradGuard no_grad;
  const at::Tensor x = at::randn({2, 8, 5, 5}, at::kDouble), added = at::randn({2, 16, 5, 5}, at::kDouble);
  const at::Tensor expected = unit.onto(added, x, 0);
  for (const auto& part : owner.children()) part->as<Layer>()->prepare(InferenceForm::kFast);
  CHECK(test::near(unit.onto(added, x, 0), expected));
}

TEST_CASE("a prepared linear layer takes an activation, or a scale and a sum, into its product") {
  const c10::InferenceMode inference;
  at::manual_seed(4);
  LinearLayer layer(at::randn({24, 10}), at::randn({24}));
  const at::Tensor x = at::randn({2, 7, 10}), added = at::randn({2, 7, 24}), scale = at::randn({24});
  const at::Tensor activated = layer.forward_into(Activation::kGelu, x), product = layer.forward(x);
  layer.prepare(InferenceForm::kFast);
  // Where oneDNN computes the layer, the error function is its own approximation, right to about 1e-6.
  CHECK(test::relative_error(layer.forward_into(Activation::kGelu, x), activated) <= network_tolerance(at::kFloat));
  CHECK(test::near(layer.forward(x), product));
  layer.set_scale(scale);
  layer.prepare(InferenceForm::kFast);
  CHECK(test::relative_error(layer.scaled_onto(added, x), added + scale * product) <= network_tolerance(at::kFloat));
}

TEST_CASE("a prepared norm with a ReLU takes some of the channels of a tensor, and keeps NaN") {
  const c10::InferenceMode inference;
  at::manual_seed(5);
  BatchNorm norm(19);
  make_uneven(norm);
  norm.eval();
  const at::Tensor all = at::randn({2, 40, 7, 9}).contiguous(at::MemoryFormat::ChannelsLast);
  all[1][3][2][1].fill_(std::numeric_limits<double>::quiet_NaN());
  for (const at::Tensor& x : {all.narrow(1, 0, 19), all.narrow(1, 0, 19).contiguous(), all.narrow(1, 5, 19)}) {
    norm.prepare(InferenceForm::kExact);
    const at::Tensor expected = norm.rectified_norm(x).clone();
    norm.prepare(InferenceForm::kFast);
    const at::Tensor got = norm.rectified_norm(x);
    CHECK(got.isnan().equal(expected.isnan()));
    CHECK(test::near(got.nan_to_num(), expected.nan_to_num()));
  }
}

TEST_CASE("a prepared norm with a ReLU rounds to the nearest bfloat16") {
  const c10::InferenceMode inference;
  at::manual_seed(5);
  BatchNorm norm(19);
  make_uneven(norm);
  norm.eval();
  norm.prepare(InferenceForm::kFast);
  const at::Tensor x = at::randn({2, 19, 7, 9}).contiguous(at::MemoryFormat::ChannelsLast).to(at::kBFloat16);
  x[1][3][2][1].fill_(std::numeric_limits<double>::quiet_NaN());
  const at::Tensor got = norm.rectified_norm(x), expected = norm.rectified_norm(x.to(at::kFloat)).to(at::kBFloat16);
  CHECK(got.scalar_type() == at::kBFloat16);
  CHECK(got.isnan().equal(expected.isnan()));
  CHECK(got.nan_to_num().equal(expected.nan_to_num()));
}

TEST_CASE("a prepared model is not trained, and is itself again without the form") {
  const auto model = make_small_resnet(8, 4, {}, {5, 3, 16, 16}, 0);
  make_uneven(*model);
  model->eval();
  const at::NoGradGuard no_grad;
  const at::Tensor x = at::randn({2, 3, 16, 16}), exact = model->forward(x).scores;
  model->prepare(InferenceForm::kFast);
  CHECK_THROWS_AS(model->train(), std::logic_error);
  CHECK(test::near(model->forward(x).scores, exact));
  model->prepare(InferenceForm::kExact);
  model->train();
  model->eval();
  CHECK(model->forward(x).scores.equal(exact));
}

}  // namespace
}  // namespace settrain
