#include "models/model.h"

#include <ATen/ATen.h>

#include <vector>

#include "models/batch_statistics.h"
#include "models/entries.h"
#include "models/layers.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

using Names = std::set<std::string>;

std::shared_ptr<Model> small_residual_net() {
  at::manual_seed(1);
  return make_small_resnet(20, 4, {}, {7, 3, 16, 16});
}

TEST_CASE("parts of a network are named by words and by patterns, from the first word of a name on") {
  const auto model = small_residual_net();
  const Names body = model->parameters_of("body"), norm = model->parameters_of("norm");
  CHECK(model->parameters_of("head") == Names{"fc.bias", "fc.weight"});
  CHECK(body.size() + 2 == model->parameters().size());
  CHECK(norm.size() == size_t{2 * 19});
  CHECK(norm.contains("layer2.1.bn2.bias"));
  CHECK_FALSE(norm.contains("layer2.1.conv2.weight"));

  CHECK(model->parameters_of("layer3").size() == size_t{3 * 6});
  CHECK(model->parameters_of("layer3.2") == Names{"layer3.2.bn1.bias", "layer3.2.bn1.weight", "layer3.2.bn2.bias",
                                                  "layer3.2.bn2.weight", "layer3.2.conv1.weight",
                                                  "layer3.2.conv2.weight"});
  CHECK(model->parameters_of("layer[23]").size() == size_t{2 * 3 * 6});
  CHECK(model->parameters_of("layer?.0.conv1") ==
        Names{"layer1.0.conv1.weight", "layer2.0.conv1.weight", "layer3.0.conv1.weight"});
  CHECK(model->parameters_of("conv1.weight") == Names{"conv1.weight"});
  CHECK(model->parameters_of("*.bias").size() == 19);  // the head's is not the body's
  CHECK(model->parameters_of("*") == body);
  for (const char* nothing : {"layer4", "layer", "ayer3", "bn1.weight.x", "fc", "fc.bias", "", "."}) {
    CAPTURE(nothing);
    CHECK(model->parameters_of(nothing).empty());
  }
}

TEST_CASE("a layer's number is no beginning of another's") {
  const auto model = make_small_densenet({100, 4}, true, {}, {7, 3, 32, 32});
  const Names first = model->parameters_of("block1.layer.1");
  CHECK(first.size() == 6);
  for (const std::string& name : first) CHECK(name.starts_with("block1.layer.1."));
}

TEST_CASE("nothing is skipped at random in blocks that are not trained") {
  const std::vector<std::string> all{"body", "head"}, last{"head", "features.7.1"};
  for (const auto& parts : {all, last}) {
    at::manual_seed(1);
    const auto model = make_convnext({{1, 2, 1, 2}, {4, 6, 8, 10}}, 0.9, {}, {7, 3, 32, 32});
    model->train_only(parts);
    model->train();
    const auto modules = model->named_modules();
    CHECK(modules["features.7.1"]->is_training());
    CHECK(modules["features.7.0"]->is_training() == (parts == all));
    CHECK(modules["features.0"]->is_training() == (parts == all));
    model->eval();
    CHECK_FALSE(modules["features.7.1"]->is_training());
    model->train();
    CHECK(modules["features.7.1"]->is_training());
  }
}

TEST_CASE("statistics are recorded for the norms that are trained") {
  const auto channels = [](const std::vector<std::string>& parts) {
    const auto model = small_residual_net();
    model->train_only(parts);
    return BatchStatistics(*model).size() / 2;
  };
  CHECK(channels({"head"}) == 0);
  CHECK(channels({"head", "layer3.2"}) == 2 * 16);
  CHECK(channels({"head", "layer3.2.conv1"}) == 0);
  CHECK(channels({"norm"}) == channels({"body"}));
}

TEST_CASE("activations that are computed again change no gradient of a network that is trained in part") {
  const auto gradients = [](bool again) {
    const auto model = small_residual_net();
    model->train_only({"head", "layer2.1", "norm"});
    if (again) model->recompute_activations();
    at::manual_seed(2);
    model->forward(at::randn({4, 3, 16, 16})).scores.square().sum().backward();
    std::vector<at::Tensor> all;
    for (const at::Tensor& parameter : model->parameters()) {
      if (parameter.grad().defined()) all.push_back(parameter.grad());
    }
    for (const at::Tensor& buffer : model->buffers()) all.push_back(buffer);
    return all;
  };
  const auto kept = gradients(false), again = gradients(true);
  REQUIRE(kept.size() == again.size());
  for (size_t i = 0; i < kept.size(); ++i) CHECK(at::equal(kept[i], again[i]));
}

}  // namespace
}  // namespace settrain
