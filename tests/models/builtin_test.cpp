// Properties of every model that a config can name.
#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <map>
#include <set>

#include "models/autocast.h"
#include "models/cost.h"
#include "models/model.h"
#include "models/model_options.h"
#include "models/named_tensors.h"
#include "src/config/load.h"
#include "src/core/error.h"
#include "tests/support/catch2.h"
#include "tests/support/tolerance.h"

namespace settrain {
namespace {

const ModelRegistry& models() {
  static const ModelRegistry registry = [] {
    ModelRegistry all("model");
    register_builtin_models(all);
    return all;
  }();
  return registry;
}

config::Config config_of(const std::string& name, const std::string& setting = "model.head=linear") {
  return config::load({{model_section(models())}, {}}, {}, {"model.name=" + name, setting});
}

// Small images, for which a test need not wait; some models take multiples of 14 pixels alone, Inceptions larger ones.
ModelContext small(const ModelEntry& entry) {
  if (entry.name == kHeadOnly) return {7, 1, 1, 20};
  int64_t most = entry.name.find("14") == std::string::npos ? 64 : 56;
  if (entry.name.starts_with("inception")) most = 107;
  return {7, 3, std::min(entry.usual.height, most), std::min(entry.usual.width, most)};
}

std::shared_ptr<Model> build_model(const std::string& name, const std::string& setting = "model.head=linear") {
  at::manual_seed(1);
  const ModelEntry& entry = models().at(name);
  auto model = entry.make(config_of(name, setting), small(entry));
  const at::NoGradGuard no_grad;  // a head of zeros would let nothing through
  for (at::Tensor& parameter : model->parameters()) {
    if (parameter.dim() == 2 && !parameter.any().item<bool>()) parameter.normal_();
  }
  return model;
}

at::Tensor images_for(const std::string& name, int64_t batch = 2) {
  at::manual_seed(2);
  const ModelContext context = small(models().at(name));
  return at::randn({batch, context.channels, context.height, context.width});
}

// One of each kind of network.
const std::vector<std::string> kKinds{"resnet8",
                                      "densenet40_12",
                                      "resnet18",
                                      "resnet50",
                                      "densenet121",
                                      "convnext_tiny",
                                      "vit_b_16",
                                      "efficientnet_b0",
                                      "efficientnet_lite0",
                                      "vit_small_patch14_reg4_dinov2",
                                      "mobilenet_v2",
                                      "mobilenet_v3_small",
                                      "shufflenet_v2_x1_0",
                                      "alexnet",
                                      "inception_v3",
                                      "squeezenet1_0"};

// Larger ones are of the same code as others of their family, and would take seconds and gigabytes.
bool is_quick(const std::string& name) {
  constexpr int64_t kMostParameters = 30'000'000;
  const ModelEntry& entry = models().at(name);
  return std::ranges::count(kKinds, name) > 0 ||
         network_cost(entry, config_of(name), small(entry)).parameters < kMostParameters;
}

std::string last_layer(const std::string& name) {
  const CostCounter without_storage;
  return models().at(name).make(config_of(name), small(models().at(name)))->layers().back().front();
}

TEST_CASE("parts that are not trained keep their weights and their batch statistics") {
  for (const std::string& name : kKinds) {
    CAPTURE(name);
    std::vector<std::vector<std::string>> all{{"head"}};
    if (name != "vit_b_16") {  // of which there is a smaller one
      all.insert(all.end(), {{"body"}, {"head", "norm"}, {"head", last_layer(name)}});
    }
    for (const std::vector<std::string>& parts : all) {
      CAPTURE(parts);
      const auto model = build_model(name);
      std::set<std::string> trained;
      for (const std::string& part : parts) trained.merge(model->parameters_of(part));
      REQUIRE_FALSE(trained.empty());
      REQUIRE(std::ssize(trained) < std::ssize(model->parameters()));
      model->train_only(parts);
      const NamedTensors tensors = state_dict(*model);
      std::map<std::string, at::Tensor> before;
      for (const auto& [key, tensor] : tensors) before[key] = tensor.detach().clone();
      model->train();
      model->forward(images_for(name)).scores.square().sum().backward();

      int64_t numbers = 0;
      for (const auto& parameter : model->named_parameters()) {
        CAPTURE(parameter.key());
        CHECK(parameter.value().grad().defined() == trained.contains(parameter.key()));
        numbers += parameter.value().grad().defined() ? parameter.value().numel() : 0;
      }
      CHECK(model->num_trained_parameters() == numbers);
      for (const auto& [key, tensor] : tensors) {
        CAPTURE(key);
        const std::string kind = ".running_mean";
        const bool moves = key.ends_with(kind) && trained.contains(key.substr(0, key.size() - kind.size()) + ".weight");
        if (key.ends_with(kind)) CHECK(at::equal(tensor, before[key]) != moves);
        if (!key.ends_with(".running_var") && !key.ends_with(".num_batches_tracked") && !moves) {
          CHECK(at::equal(tensor, before[key]));
        }
      }
    }
  }
}

TEST_CASE("every model makes scores and finite gradients for all of its parameters, with every head") {
  std::vector<std::pair<std::string, std::string>> all;
  for (const std::string& name : models().names()) {
    if (is_quick(name)) all.emplace_back(name, "linear");
  }
  for (const std::string& name : kKinds) {
    all.emplace_back(name, "normalised");
    all.emplace_back(name, "two_head");
  }
  for (const auto& [name, head] : all) {
    CAPTURE(name, head);
    const auto model = build_model(name, "model.head=" + head);
    const ModelOutput output = model->forward(images_for(name));
    CHECK(output.scores.sizes() == at::IntArrayRef{2, 7});
    CHECK(output.features.size(0) == 2);
    at::Tensor sum = output.scores.square().sum();
    if (head == "two_head") sum = sum + output.scores_multi.square().sum();
    sum.backward();
    for (const auto& parameter : model->named_parameters()) {
      CAPTURE(parameter.key());
      REQUIRE(parameter.value().grad().defined());
      CHECK(at::isfinite(parameter.value().grad()).all().item<bool>());
    }
  }
}

TEST_CASE("every model is its body and its head, which answers to features as to the images that they are of") {
  const at::NoGradGuard no_grad;
  for (const std::string& name : models().names()) {
    if (!is_quick(name)) continue;
    for (const std::string head : {"linear", "normalised"}) {
      if (head == "normalised" && std::ranges::count(kKinds, name) == 0) continue;
      CAPTURE(name, head);
      const auto model = build_model(name, "model.head=" + head);
      model->eval();
      const at::Tensor images = images_for(name);
      const ModelOutput whole = model->forward(images), parts = model->classify(model->features(images));
      CHECK(at::equal(parts.scores, whole.scores));
      CHECK(at::equal(parts.features, whole.features));
      CHECK(whole.features.dim() == 2);
      if (name == "squeezenet1_0" && head == "linear") {
        CHECK_THROWS_AS(model->forward(whole.features), ShapeError);
      } else {
        CHECK(at::equal(model->forward(whole.features).scores, whole.scores));
      }
      CHECK_THROWS_AS(model->forward(whole.features.slice(1, 1)), ShapeError);
    }
  }
}

TEST_CASE("where the head alone learns, it drops the same features whether a step begins with images or with them") {
  for (const std::string& name : kKinds) {
    if (name == "squeezenet1_0") continue;  // whose head sees pixels
    CAPTURE(name);
    const auto model = build_model(name);
    model->train_only({"head"});
    const at::Tensor images = images_for(name);
    model->eval();
    const at::Tensor features = model->forward(images).features.detach();
    model->train();
    const auto learn = [&](const at::Tensor& x) {
      at::manual_seed(3);
      model->zero_grad();
      const at::Tensor scores = model->forward(x).scores;
      scores.square().sum().backward();
      std::vector<at::Tensor> all{scores.detach()};
      for (const at::Tensor& parameter : model->parameters()) {
        if (parameter.grad().defined()) all.push_back(parameter.grad().clone());
      }
      return all;
    };
    const std::vector<at::Tensor> from_images = learn(images), from_features = learn(features);
    REQUIRE(from_images.size() == from_features.size());
    for (size_t i = 0; i < from_images.size(); ++i) CHECK(at::equal(from_images[i], from_features[i]));
  }
}

TEST_CASE("every model knows its head's parameters: those whose shapes follow the number of classes") {
  const CostCounter without_storage;
  for (const ModelEntry& entry : models().entries()) {
    for (const char* head : {"linear", "normalised", "two_head"}) {
      CAPTURE(entry.name, head);
      const auto with_classes = [&](int64_t classes) {
        ModelContext context = small(entry);
        context.num_classes = classes;
        return entry.make(config_of(entry.name, std::string("model.head=") + head), context);
      };
      const auto seven = with_classes(7), eight = with_classes(8);
      std::set<std::string> differing;
      for (const auto& item : eight->named_parameters()) {
        if (item.value().sizes() != seven->named_parameters()[item.key()].sizes()) differing.insert(item.key());
      }
      CHECK(seven->head_parameters() == differing);
      CHECK_FALSE(differing.empty());
    }
  }
}

TEST_CASE("every model tells its layers: each has parameters, each parameter one layer, the head's none") {
  const CostCounter without_storage;
  for (const ModelEntry& entry : models().entries()) {
    CAPTURE(entry.name);
    const auto model = entry.make(config_of(entry.name), small(entry));
    const auto num_layers = std::ssize(model->layers());
    CHECK((num_layers > 3 || entry.name == kHeadOnly));
    std::map<int64_t, int64_t> sizes;
    for (const auto& [name, below] : model->layers_below_head()) sizes[below] += 1;
    CHECK(std::ssize(sizes) == num_layers + 1);
    CHECK(sizes.rbegin()->first == num_layers);
    for (const std::string& name : model->head_parameters()) CHECK(model->layers_below_head().at(name) == 0);
    // No part of a layer is named in another one too.
    std::set<std::string> parts;
    for (const auto& layer : model->layers()) {
      for (const std::string& part : layer) CHECK(parts.insert(part).second);
    }
  }
}

TEST_CASE("the cost of a network is counted without building it") {
  for (const std::string& name : kKinds) {
    CAPTURE(name);
    const ModelEntry& entry = models().at(name);
    CHECK(network_cost(entry, config_of(name), small(entry)).parameters == build_model(name)->num_parameters());
  }
  // torchvision's documentation prints these (it counts convolutions, linear layers and products of attention).
  const auto giga = [](const std::string& name) {
    return 1e-9 *
           static_cast<double>(network_cost(models().at(name), config_of(name), models().at(name).usual).multiply_adds);
  };
  CHECK(giga("resnet18") == Approx(1.81).margin(0.005));
  CHECK(giga("resnet50") == Approx(4.09).margin(0.005));
  CHECK(giga("wide_resnet50_2") == Approx(11.40).margin(0.005));
  CHECK(giga("densenet121") == Approx(2.83).margin(0.005));
  CHECK(giga("resnext50_32x4d") == Approx(4.23).margin(0.005));
  CHECK(giga("convnext_tiny") == Approx(4.456).margin(0.0005));
  CHECK(giga("convnext_small") == Approx(8.684).margin(0.0005));
  CHECK(giga("convnext_base") == Approx(15.355).margin(0.0005));
  CHECK(giga("convnext_large") == Approx(34.361).margin(0.0005));
  CHECK(giga("wide_resnet101_2") == Approx(22.753).margin(0.0005));
  CHECK(giga("alexnet") == Approx(0.714).margin(0.0005));
  CHECK(giga("inception_v3") == Approx(5.713).margin(0.0005));
  CHECK(giga("squeezenet1_0") == Approx(0.819).margin(0.0005));
  CHECK(giga("vgg11") == Approx(7.609).margin(0.0005));
  CHECK(giga("efficientnet_b0") == Approx(0.386).margin(0.0005));
  CHECK(giga("efficientnet_b1") == Approx(0.687).margin(0.0005));
  CHECK(giga("efficientnet_b2") == Approx(1.088).margin(0.0005));
  CHECK(giga("efficientnet_b3") == Approx(1.827).margin(0.0005));
  CHECK(giga("efficientnet_b4") == Approx(4.394).margin(0.0005));
  CHECK(giga("efficientnet_v2_s") == Approx(8.366).margin(0.0005));
  CHECK(giga("mobilenet_v2") == Approx(0.301).margin(0.0005));
  CHECK(giga("mobilenet_v3_small") == Approx(0.057).margin(0.0005));
  CHECK(giga("mobilenet_v3_large") == Approx(0.217).margin(0.0005));
  CHECK(giga("shufflenet_v2_x1_0") == Approx(0.145).margin(0.0005));
  CHECK(giga("vit_b_16") == Approx(17.564).margin(0.0005));
  CHECK(giga("vit_base_patch16") == giga("vit_b_16"));
  CHECK(giga("vit_large_patch14_reg4_dinov2") > 400);       // of 518x518 pixels, without storage
  CHECK(build_model("resnet8")->parameters()[0].is_cpu());  // the count leaves nothing behind
}

TEST_CASE("channels last changes the layout and not the numbers") {
  for (const std::string& name : kKinds) {
    CAPTURE(name);
    const auto plain = build_model(name), last = build_model(name);
    for (const auto& model : {plain, last}) model->to(at::kDouble);
    last->set_channels_last(true);
    for (const at::Tensor& parameter : last->parameters()) {
      if (parameter.dim() == 4) CHECK(parameter.is_contiguous(at::MemoryFormat::ChannelsLast));
    }
    const at::Tensor images = images_for(name).to(at::kDouble);
    at::manual_seed(3);
    const at::Tensor expected = plain->forward(images).scores;
    at::manual_seed(3);
    const at::Tensor got = last->forward(images.contiguous(at::MemoryFormat::ChannelsLast)).scores;
    CHECK((got - expected).abs().max().item<double>() <= network_tolerance(at::kDouble));
    expected.sum().backward();
    got.sum().backward();
    for (size_t i = 0; i < plain->parameters().size(); ++i) {
      const at::Tensor gradient = plain->parameters()[i].grad();
      const double error = (last->parameters()[i].grad() - gradient).abs().max().item<double>();
      CHECK(error <= network_tolerance(at::kDouble) * std::max(1.0, gradient.norm().item<double>()));
    }
    last->set_channels_last(false);
    CHECK(last->parameters()[0].is_contiguous());
  }
}

TEST_CASE("activations that are computed again give the same scores, gradients and batch statistics") {
  const bool bf16 = GENERATE(false, true);
  for (const std::string& name : kKinds) {
    CAPTURE(name, bf16);
    const auto kept = build_model(name), again = build_model(name);
    again->recompute_activations();
    std::vector<at::Tensor> scores;
    for (const auto& model : {kept, again}) {
      const Autocast autocast(at::kCPU, bf16);
      scores.push_back(model->forward(images_for(name)).scores);
      scores.back().square().sum().backward();
    }
    CHECK(at::equal(scores[0], scores[1]));
    for (size_t i = 0; i < kept->parameters().size(); ++i) {
      CHECK(at::equal(kept->parameters()[i].grad(), again->parameters()[i].grad()));
    }
    const NamedTensors expected = state_dict(*kept), got = state_dict(*again);
    for (size_t i = 0; i < expected.size(); ++i) {
      CAPTURE(expected[i].first);
      CHECK(at::equal(got[i].second, expected[i].second));
    }
  }
}

// Batch statistics as training might leave them, so that folding them shows.
void make_statistics_uneven(Model& model) {
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : state_dict(model)) {
    if (name.ends_with("running_mean")) tensor.normal_(0, 0.1);
    if (name.ends_with("running_var")) tensor.uniform_(0.7, 1.4);
  }
}

TEST_CASE("the fast form of every model gives its scores and features, and bf16 about them") {
  for (const ModelEntry& entry : models().entries()) {
    const std::string& name = entry.name;
    if (!is_quick(name) || name == kHeadOnly) continue;
    CAPTURE(name);
    const auto model = build_model(name);
    make_statistics_uneven(*model);
    model->eval();
    const c10::InferenceMode inference;
    const bool has_one_size = model->patch_grid().has_value() || name.starts_with("densenet40") || name == "densenet";
    std::vector<at::Tensor> images{images_for(name), images_for(name, 1),
                                   images_for(name, 3).contiguous(at::MemoryFormat::ChannelsLast)};
    if (!has_one_size) images.push_back(at::randn({1, 3, small(entry).height + 9, small(entry).width + 22}));
    std::vector<ModelOutput> exact;
    for (const at::Tensor& x : images) exact.push_back(model->forward(x));
    for (const InferenceForm form : {InferenceForm::kFast, InferenceForm::kBf16}) {
      model->prepare(form);
      for (size_t i = 0; i < images.size(); ++i) {
        CAPTURE(static_cast<int>(form), i);
        const ModelOutput output = model->forward(images[i]);
        REQUIRE(output.scores.scalar_type() == at::kFloat);
        const double most = form == InferenceForm::kFast ? network_tolerance(at::kFloat) : 0.1;
        const auto scale = [](const at::Tensor& x) { return std::max(1.0, x.abs().max().item<double>()); };
        CHECK((output.scores - exact[i].scores).abs().max().item<double>() <= most * scale(exact[i].scores));
        CHECK((output.features - exact[i].features).abs().max().item<double>() <= most * scale(exact[i].features));
      }
    }
  }
}

TEST_CASE("a network whose activations overflow stays in the exact form, in which a ReLU hides no NaN") {
  const c10::InferenceMode inference;
  for (const InferenceForm form : {InferenceForm::kFast, InferenceForm::kBf16}) {
    const auto model = build_model("resnet20");
    model->named_parameters()["conv1.weight"].mul_(3e38);
    CHECK(prepare_checked(*model, form, small(models().at("resnet20")), at::kCPU) ==
          "scores of a random image are not finite");
    CHECK(model->forward(images_for("resnet20")).scores.isnan().any().item<bool>());
  }
}

TEST_CASE("bf16 rounds within the network, and the head's scores stay float32") {
  for (const std::string& name : kKinds) {
    if (name == "shufflenet_v2_x1_0") continue;  // as drawn, it lets nothing of an image through in evaluation
    CAPTURE(name);
    const auto model = build_model(name);
    model->eval();
    const at::Tensor exact = model->forward(images_for(name)).scores;
    ModelOutput rounded;
    {
      const Autocast autocast(at::kCPU, true);
      rounded = model->forward(images_for(name));
    }
    CHECK_FALSE(Autocast::is_on(at::kCPU));
    CHECK(rounded.scores.scalar_type() == at::kFloat);
    CHECK(rounded.features.scalar_type() == at::kFloat);
    CHECK_FALSE(at::equal(rounded.scores, rounded.scores.to(at::kBFloat16).to(at::kFloat)));
    // 8 bits, over some dozen layers.
    const double error = (rounded.scores - exact).norm().item<double>() / exact.norm().item<double>();
    CHECK(error > 1e-4);
    CHECK(error < 0.2);
  }
}

TEST_CASE("a batch of one image with one pixel left is reported, not trained on") {
  const auto model = build_model("resnet8");
  CHECK_THROWS_WITH(model->forward(at::randn({1, 3, 4, 4})),
                    Catch::Contains("data.drop_last") && Catch::Contains("data.batch_size"));
  CHECK(at::isfinite(*model->named_buffers().find("layer3.0.bn1.running_var")).all().item<bool>());
  CHECK_NOTHROW(model->forward(at::randn({2, 3, 4, 4})));
  model->eval();
  CHECK_NOTHROW(model->forward(at::randn({1, 3, 4, 4})));

  const auto check = [](const std::string& name, int64_t side) {
    check_batch_of_one(models().at(name), config_of(name), {10, 3, side, side});
  };
  for (const char* name : {"resnet18", "densenet121"}) {
    CAPTURE(name);
    CHECK_THROWS_WITH(check(name, 32), Catch::Contains("data.drop_last") && Catch::Contains("data.batch_size"));
    CHECK_NOTHROW(check(name, 64));
  }
}

TEST_CASE("the backward pass costs what the trained parts need") {
  const auto passes = [](const std::string& name, std::vector<std::string> settings) {
    settings.insert(settings.end(), {"model.name=" + name, "model.pretrained=weights.pth"});
    const config::Config config = config::load({{model_section(models())}, {}}, {}, settings);
    return training_passes(models().at(name), config, models().at(name).usual);
  };
  for (const std::string& name : kKinds) {
    CAPTURE(name);
    CHECK(passes(name, {}) == 3);
    CHECK(passes(name, {"model.trainable=[head]"}) == 1);
    if (name == "alexnet" || name == "squeezenet1_0") continue;  // without norms
    const double all_norms = passes(name, {"model.trainable=[head, norm]"});
    CHECK((all_norms > 1.9 && all_norms < 2.5));  // gradients of nearly all activations, and of no weights
  }
  constexpr double kHead = 512 * 1000, kBlock = 2.0 * 512 * 512 * 9 * 7 * 7, kAll = 1814073344;
  CHECK(passes("resnet18", {"model.trainable=[head, layer4.1]"}) == Approx(1 + 2 * (kBlock + kHead) / kAll));
  CHECK(passes("resnet18", {"model.trainable=[head, \"layer4.1.bn1.*\"]"}) == Approx(1 + (kBlock + 2 * kHead) / kAll));
  constexpr double kStem = 64 * 3 * 7 * 7 * 112.0 * 112;
  CHECK(passes("resnet18", {"model.trainable=[head, conv1]"}) == Approx(2 + (kStem + kHead) / kAll));
  const double last = passes("vit_small_patch16", {"model.trainable=[head, blocks.11]"});
  CHECK(last == Approx(1 + 2.0 / 12).margin(0.01));
  const double lora = passes("vit_small_patch16", {"model.adapter.kind=lora", "model.adapter.rank=1"});
  CHECK((lora > 2 && lora < 2.2));
}

TEST_CASE("images that a model cannot take are refused before its first step") {
  CHECK_THROWS_WITH(models().at("densenet121").make(config_of("densenet121"), {10, 1, 28, 28}),
                    Catch::Contains("29x29") && Catch::Contains("28x28"));
  const auto smallest = models().at("densenet121").make(config_of("densenet121"), {10, 1, 29, 29});
  smallest->eval();
  CHECK(smallest->forward(at::randn({1, 1, 29, 29})).scores.sizes() == at::IntArrayRef{1, 10});

  const auto cost = [](const std::string& name, int64_t height, int64_t width) {
    return network_cost(models().at(name), config_of(name), {10, 3, height, width}).multiply_adds;
  };
  CHECK_THROWS_WITH(cost("convnext_tiny", 31, 224), Catch::Contains("32x32") && Catch::Contains("31x224"));
  CHECK(cost("convnext_tiny", 32, 33) > 0);
  for (const auto& [name, least] : {std::pair<std::string, int64_t>{"alexnet", 63},
                                    {"inception_resnet_v2", 75},
                                    {"inception_v3", 75},
                                    {"inception_v4", 75},
                                    {"squeezenet1_0", 21},
                                    {"vgg11", 32}}) {
    CAPTURE(name);
    const std::string side = std::to_string(least);
    CHECK_THROWS_WITH(cost(name, 224, least - 1), Catch::Contains(name) && Catch::Contains(side + "x" + side));
    CHECK(cost(name, least, least) > 0);
  }
  CHECK_THROWS_WITH(cost("head_only", 32, 32), Catch::Contains("features") && Catch::Contains("32x32"));
  for (const auto& [height, width] : {std::pair<int64_t, int64_t>{1, 1}, {224, 230}, {100, 100}}) {
    CHECK_THROWS_WITH(
        cost("vit_b_16", height, width),
        Catch::Contains("multiple of 16") && Catch::Contains(std::to_string(height) + "x" + std::to_string(width)));
  }
  CHECK(cost("vit_b_16", 16, 32) > 0);
  CHECK_THROWS_WITH(cost("vit_base_patch14_dinov2", 256, 256), Catch::Contains("multiple of 14"));
}

}  // namespace
}  // namespace settrain
