#include "src/train/pretrained.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <fstream>

#include "models/model.h"
#include "models/model_options.h"
#include "models/named_tensors.h"
#include "src/checkpoint/tensor_file.h"
#include "src/config/load.h"
#include "src/core/error.h"
#include "tests/support/catch2.h"
#include "tests/support/temporary_folder.h"

namespace settrain {
namespace {

using Catch::Contains;

const ModelRegistry& models() {
  static const ModelRegistry registry = [] {
    ModelRegistry all("model");
    register_builtin_models(all);
    return all;
  }();
  return registry;
}

config::Config configured_model(std::vector<std::string> settings) {
  return config::load({{model_section(models())}, {}}, {}, settings);
}

class Weights {
 public:
  explicit Weights(std::string name, int64_t classes = 5) : name_(std::move(name)), classes_(classes) {}

  std::shared_ptr<Model> draw(int64_t seed, const std::string& head = "linear", int64_t classes = 5) const {
    at::manual_seed(seed);
    return models().at(name_).make(configured_model({"model.name=" + name_, "model.head=" + head}),
                                   {classes, 3, 64, 64});
  }

  // The weights of another model, which has `classes` of its own.
  TensorMap others() const {
    TensorMap tensors;
    for (const auto& [name, tensor] : state_dict(*draw(1, "linear", classes_))) tensors[name] = tensor.detach();
    return tensors;
  }

  std::optional<Pretrained> load(const TensorMap& tensors, Model& model, const std::string& head = "linear") const {
    write_tensor_file(file(), tensors);
    return load_pretrained(config({"model.head=" + head}), model);
  }

  config::Config config(std::vector<std::string> settings = {}) const {
    settings.insert(settings.end(), {"model.name=" + name_, "model.pretrained=" + file()});
    return configured_model(settings);
  }
  std::string file() const { return (folder_ / "weights.safetensors").string(); }

 private:
  test::TemporaryFolder folder_;
  std::string name_;
  int64_t classes_;
};

TEST_CASE("weights are loaded by name, and a head of other classes stays as drawn") {
  const Weights weights("resnet8", 1000);
  const TensorMap theirs = weights.others();
  for (const std::string head : {"linear", "normalised", "two_head"}) {
    CAPTURE(head);
    const auto model = weights.draw(2, head), drawn = weights.draw(2, head);
    const auto loaded = weights.load(theirs, *model, head);
    REQUIRE(loaded);
    const std::vector<std::string> heads =
        head == "two_head" ? std::vector<std::string>{"fc", "fc_multi"} : std::vector<std::string>{"fc"};
    CHECK(loaded->drawn == heads);
    CHECK(loaded->sha256.size() == 64);
    CHECK(loaded->num_tensors == static_cast<int64_t>(theirs.size()) - 2);
    CHECK_THAT(loaded->describe(), Contains("head 'fc'"));
    const NamedTensors before = state_dict(*drawn);
    const NamedTensors after = state_dict(*model);
    for (size_t i = 0; i < after.size(); ++i) {
      const auto& [name, tensor] = after[i];
      CAPTURE(name);
      CHECK(at::equal(tensor, name.starts_with("fc") ? before[i].second : theirs.at(name)));
    }
  }
}

TEST_CASE("a head that fits is loaded, all of it or nothing") {
  const Weights weights("resnet8");
  TensorMap theirs = weights.others();
  const auto model = weights.draw(2);
  CHECK(weights.load(theirs, *model)->drawn.empty());
  CHECK(at::equal(model->named_parameters()["fc.weight"], theirs["fc.weight"]));

  theirs.erase("fc.bias");
  const auto other = weights.draw(2);
  CHECK_THROWS_WITH(weights.load(theirs, *other), Contains("has a head without a bias; set model.head_bias: false"));
  theirs["fc.bias"] = model->named_parameters()["fc.bias"].detach();
  theirs["fc.factor"] = theirs["fc.bias"];
  CHECK_THROWS_WITH(weights.load(theirs, *other),
                    Contains("has a scaled head; `settrain export` makes it a linear one"));
}

TEST_CASE("a head of as many classes that would be lost is refused: of another kind, or drawn and never trained") {
  const Weights weights("resnet8");
  for (const auto& [theirs, ours] : {std::pair{"normalised", "linear"}, {"linear", "normalised"}}) {
    TensorMap tensors;
    for (const auto& [name, tensor] : state_dict(*weights.draw(1, theirs))) tensors[name] = tensor.detach();
    const auto model = weights.draw(2, ours);
    write_tensor_file(weights.file(), tensors);
    CHECK_THROWS_WITH(load_pretrained(weights.config({std::string("model.head=") + ours}), *model),
                      Contains(fmt::format("has a {0} head; set model.head: {0}, or", theirs)));
    CHECK_NOTHROW(
        load_pretrained(weights.config({std::string("model.head=") + ours, "model.pretrained_head=draw"}), *model));
  }
  const Weights others("resnet8", 1000);
  write_tensor_file(others.file(), others.others());
  const auto model = others.draw(2);
  CHECK_THROWS_WITH(load_pretrained(others.config({"model.trainable=[body]"}), *model),
                    Contains("has no weights that fit fc, which model.trainable") && !Contains("draw,"));
  CHECK_NOTHROW(load_pretrained(others.config(), *model));

  // Advice is only what other rules let be.
  const Weights normalised("resnet8");
  TensorMap tensors;
  for (const auto& [name, tensor] : state_dict(*normalised.draw(1, "normalised"))) tensors[name] = tensor.detach();
  write_tensor_file(normalised.file(), tensors);
  const auto linear = normalised.draw(2);
  CHECK_THROWS_WITH(
      load_pretrained(normalised.config({"model.pretrained_head=tau_normalised"}), *linear),
      Contains("has a normalised head; model.pretrained_head: tau_normalised is for linear ones") && !Contains("draw"));
}

TEST_CASE("a head that fits can be drawn all the same, normalised, or scaled") {
  const Weights weights("resnet8");
  const TensorMap theirs = weights.others();
  weights.load(theirs, *weights.draw(2));
  const at::Tensor weight = theirs.at("fc.weight");

  const auto fresh = weights.draw(2);
  CHECK(load_pretrained(weights.config({"model.pretrained_head=draw"}), *fresh)->drawn ==
        std::vector<std::string>{"fc"});
  CHECK(at::equal(fresh->named_parameters()["fc.weight"], weights.draw(2)->named_parameters()["fc.weight"]));
  CHECK(at::equal(fresh->named_parameters()["conv1.weight"], theirs.at("conv1.weight")));

  const auto normalised = weights.draw(2);
  const auto loaded =
      load_pretrained(weights.config({"model.pretrained_head=tau_normalised", "model.head_tau=0.5"}), *normalised);
  CHECK_THAT(loaded->describe(), Contains("head fc normalised with tau 0.5"));
  CHECK(at::allclose(normalised->named_parameters()["fc.weight"], weight / weight.norm(2, 1, true).sqrt()));
  CHECK(normalised->named_parameters()["fc.bias"].abs().max().item<double>() == 0);
  for (const double factor : {1.0, 100.0}) {  // norms below and above 1
    const Weights extreme("resnet8");
    TensorMap tensors = theirs;
    tensors["fc.weight"] = factor * weight;
    write_tensor_file(extreme.file(), tensors);
    CHECK_THROWS_WITH(load_pretrained(extreme.config({"model.pretrained_head=tau_normalised", "model.head_tau=1000"}),
                                      *weights.draw(2)),
                      Contains("model.head_tau: 1000: a norm of fc.weight to this power is 0 or infinite"));
  }

  const auto scaled = weights.draw(2, "scaled");
  CHECK(load_pretrained(weights.config({"model.head=scaled"}), *scaled)->drawn.empty());
  CHECK(at::equal(scaled->named_parameters()["fc.weight"], weight));
  CHECK(scaled->named_parameters()["fc.factor"].eq(1).all().item<bool>());

  // With other classes there is no head that could be changed.
  const Weights others("resnet8", 7);
  others.load(others.others(), *others.draw(2));
  CHECK_THROWS_WITH(load_pretrained(others.config({"model.head=scaled"}), *others.draw(2, "scaled")),
                    Contains("no head of this many classes that model.head: scaled could change"));
}

TEST_CASE("files of an earlier torchvision fit too") {
  const Weights weights("densenet121", 1000);
  TensorMap old;
  for (const auto& [name, tensor] : weights.others()) {
    if (name.ends_with(".num_batches_tracked")) continue;
    std::string earlier = name;
    const size_t layer = earlier.find("denselayer");
    const size_t part = layer == std::string::npos ? layer : earlier.find_first_of("12", earlier.find('.', layer));
    if (part != std::string::npos) earlier = earlier.substr(0, part) + "." + earlier.substr(part);
    old[earlier] = tensor;
  }
  REQUIRE(old.count("features.denseblock1.denselayer1.norm.1.weight") == 1);
  const auto model = weights.draw(2);
  const auto loaded = weights.load(old, *model);
  CHECK(loaded->drawn == std::vector<std::string>{"classifier"});
  CHECK(loaded->num_tensors == static_cast<int64_t>(old.size()) - 2);
  CHECK(at::equal(model->named_parameters()["features.denseblock4.denselayer16.conv2.weight"],
                  old["features.denseblock4.denselayer16.conv.2.weight"]));
}

TEST_CASE("a head within another module is found, and one of other classes stays as drawn") {
  const auto [name, head] = GENERATE(std::pair<std::string, std::string>{"convnext_tiny", "classifier.2"},
                                     std::pair<std::string, std::string>{"vit_b_16", "heads.head"});
  CAPTURE(name);
  const Weights weights(name, 1000);
  TensorMap theirs = weights.others();
  const auto model = weights.draw(2, "two_head");
  const auto loaded = weights.load(theirs, *model);
  CHECK(loaded->drawn == std::vector<std::string>{head, head + "_multi"});
  CHECK(loaded->num_tensors == static_cast<int64_t>(theirs.size()) - 2);
  for (const auto& [entry, tensor] : state_dict(*model)) {
    CAPTURE(entry);
    if (!entry.starts_with(head)) CHECK(at::equal(tensor, theirs.at(entry)));
  }
  theirs.erase(head + ".weight");
  theirs.erase(head + ".bias");
  CHECK(weights.load(theirs, *weights.draw(2))->drawn == std::vector<std::string>{head});
}

TEST_CASE("what a file has for training alone is left out, and told") {
  constexpr int64_t kSide = 75;
  const test::TemporaryFolder folder;
  const std::string file = (folder / "weights.safetensors").string();
  const config::Config config = configured_model({"model.name=inception_v3", "model.pretrained=" + file});
  const auto drawn = [&](int64_t seed) {
    at::manual_seed(seed);
    return models().at("inception_v3").make(config, {5, 3, kSide, kSide});
  };
  TensorMap tensors;
  for (const auto& [name, tensor] : state_dict(*drawn(1))) tensors["module." + name] = tensor.detach();
  const auto model = drawn(2);
  write_tensor_file(file, tensors);
  CHECK_THAT(load_pretrained(config, *model)->describe(), !Contains("AuxLogits"));
  for (const char* name : {"conv0.conv.weight", "conv0.bn.running_mean", "fc.weight", "fc.bias"}) {
    tensors[std::string("module.AuxLogits.") + name] = at::ones({3, 3});
  }
  write_tensor_file(file, tensors);
  const auto loaded = load_pretrained(config, *model);
  CHECK_THAT(loaded->describe(), Contains("AuxLogits"));
  CHECK(loaded->drawn.empty());
  CHECK(at::equal(model->named_parameters()["fc.weight"], tensors["module.fc.weight"]));
  tensors["module.Others.fc.weight"] = at::ones({3, 3});
  write_tensor_file(file, tensors);
  CHECK_THROWS_WITH(load_pretrained(config, *model), Contains("Others.fc.weight") && !Contains("AuxLogits.fc"));
}

TEST_CASE("a head that is a convolution is loaded, drawn for other classes, or refused for a normalised one") {
  const Weights weights("squeezenet1_0");
  TensorMap theirs = weights.others();
  const auto model = weights.draw(2), fewer = weights.draw(2, "linear", 4), normalised = weights.draw(2, "normalised");
  CHECK(weights.load(theirs, *model)->drawn.empty());
  CHECK(at::equal(model->named_parameters()["classifier.1.weight"], theirs["classifier.1.weight"]));
  CHECK(weights.load(theirs, *fewer)->drawn == std::vector<std::string>{"classifier.1"});
  CHECK_THROWS_WITH(weights.load(theirs, *normalised, "normalised"), Contains("model.head: linear"));
  for (const auto& [name, tensor] : state_dict(*normalised)) theirs[name] = tensor.detach();
  theirs.erase("classifier.1.bias");
  CHECK_THROWS_WITH(weights.load(theirs, *model), Contains("model.head: normalised"));
}

TEST_CASE("a vision transformer's file for images of another size is resized, or refused by both numbers of places") {
  const Weights weights("vit_b_16");
  TensorMap theirs = weights.others();
  theirs["encoder.pos_embedding"] = at::zeros({1, 198, 768});
  const auto model = weights.draw(2);
  CHECK_THROWS_WITH(weights.load(theirs, *model),
                    Contains("encoder.pos_embedding: [1, 198, 768] float32, expected [1, 17, 768] float32"));
  theirs["encoder.pos_embedding"] = at::zeros({1, 197, 768});
  CHECK_THAT(weights.load(theirs, *model)->describe(), Contains("14x14") && Contains("4x4"));
  CHECK_FALSE(model->named_parameters()["encoder.pos_embedding"].any().item<bool>());
}

TEST_CASE("all that does not fit is said at once, and nothing is copied") {
  const Weights weights("resnet8");
  TensorMap theirs = weights.others();
  theirs.erase("layer1.0.bn1.weight");
  theirs["conv1.weight"] = at::zeros({16, 1, 3, 3});
  theirs["layer4.0.conv1.weight"] = at::zeros({2});
  theirs["bn1.weight"] = at::zeros({16}, at::kLong);
  theirs["bn1.bias"] = at::zeros({16}, at::kLong).to(at::kUInt16);
  theirs["bn1.num_batches_tracked"] = at::zeros({}, at::kLong).to(at::kUInt64);
  const auto model = weights.draw(2);
  CHECK_THROWS_WITH(weights.load(theirs, *model),
                    Contains("layer1.0.bn1.weight: missing") && Contains("layer4.0.conv1.weight: the model has no") &&
                        Contains("conv1.weight: [16, 1, 3, 3] float32, expected [16, 3, 3, 3] float32") &&
                        Contains("bn1.weight: [16] int64, expected [16] float32") &&
                        Contains("bn1.bias: [16] uint16, expected [16] float32") &&
                        Contains("bn1.num_batches_tracked: [] uint64, expected [] int64"));
  CHECK(at::equal(model->named_parameters()["layer2.0.conv1.weight"],
                  weights.draw(2)->named_parameters()["layer2.0.conv1.weight"]));
}

TEST_CASE("a last layer of another name is the head, and a second one too many") {
  const Weights weights("resnet8");
  TensorMap theirs;
  for (const auto& [name, tensor] : weights.others())
    theirs[name.starts_with("fc.") ? "linear" + name.substr(2) : name] = tensor;
  const auto model = weights.draw(2);
  CHECK(weights.load(theirs, *model)->drawn.empty());
  CHECK(at::equal(model->named_parameters()["fc.weight"], theirs["linear.weight"]));
  theirs["classifier.weight"] = at::zeros({5, 64});
  CHECK_THROWS_WITH(weights.load(theirs, *model), Contains("linear.weight: the model has no such tensor"));
}

TEST_CASE("messages about a last layer of another name give that name, and blame it for no other tensor") {
  const Weights weights("resnet8");
  TensorMap theirs;
  for (const auto& [name, tensor] : weights.others())
    theirs[name.starts_with("fc.") ? "linear" + name.substr(2) : name] = tensor;
  const auto model = weights.draw(2);
  SECTION("a tensor too many") {
    theirs["extra.weight"] = at::zeros({2});
    CHECK_THROWS_WITH(weights.load(theirs, *model), Contains("extra.weight: the model has no such tensor") &&
                                                        Contains("its head is linear") && !Contains("linear.weight"));
  }
  SECTION("a value that is not finite") {
    theirs["linear.weight"] = at::full({5, 64}, NAN);
    CHECK_THROWS_WITH(weights.load(theirs, *model), Contains("its head is linear") && Contains("finite"));
  }
  SECTION("no bias") {
    theirs.erase("linear.bias");
    CHECK_THROWS_WITH(weights.load(theirs, *model), Contains("its head is linear") && Contains("model.head_bias"));
  }
}

// The same tensors by other names: the body's behind a prefix, the head's as a layer of that name.
TensorMap renamed(const TensorMap& tensors, const std::string& prefix, const std::string& head) {
  TensorMap others;
  for (const auto& [name, tensor] : tensors)
    others[name.starts_with("fc.") ? head + name.substr(2) : prefix + name] = tensor;
  return others;
}

TEST_CASE("a prefix before the names of all but the head is taken off") {
  const Weights weights("resnet8");
  const TensorMap theirs = weights.others();
  const auto [prefix, head] = GENERATE(std::pair<std::string, std::string>{"backbone.", "head.fc"},
                                       std::pair<std::string, std::string>{"encoder.", "encoder.fc"},
                                       std::pair<std::string, std::string>{"a.resnet.", "last_linear"},
                                       std::pair<std::string, std::string>{"module.student.", "module.student.fc"},
                                       std::pair<std::string, std::string>{"", "head.layers.1"});
  CAPTURE(prefix, head);
  const auto model = weights.draw(2);
  const auto loaded = weights.load(renamed(theirs, prefix, head), *model);
  CHECK(loaded->drawn.empty());
  CHECK(loaded->num_tensors == std::ssize(theirs));
  CHECK(at::equal(model->named_parameters()["layer2.0.conv1.weight"], theirs.at("layer2.0.conv1.weight")));
  CHECK(at::equal(model->named_parameters()["fc.weight"], theirs.at("fc.weight")));
}

TEST_CASE("a body behind a prefix without a head, or with one of other classes, leaves the model's as drawn") {
  const Weights weights("resnet8", 1000);
  TensorMap theirs = renamed(weights.others(), "backbone.", "head.fc");
  const auto loaded = weights.load(theirs, *weights.draw(2));
  CHECK(loaded->drawn == std::vector<std::string>{"fc"});
  CHECK_THAT(loaded->describe(), Contains("backbone.") && Contains("[1000, 64]"));
  theirs.erase("head.fc.weight");
  theirs.erase("head.fc.bias");
  CHECK(weights.load(theirs, *weights.draw(2))->drawn == std::vector<std::string>{"fc"});
}

TEST_CASE("weights that a file holds several times are refused by their prefixes") {
  const Weights weights("resnet8");
  TensorMap theirs = renamed(weights.others(), "encoder_q.", "encoder_q.fc");
  for (const auto& [name, tensor] : renamed(weights.others(), "encoder_k.", "encoder_k.fc")) theirs[name] = tensor;
  CHECK_THROWS_WITH(weights.load(theirs, *weights.draw(2)), Contains("encoder_k.") && Contains("encoder_q."));
}

TEST_CASE("a layer that cannot be the head is no head") {
  const Weights weights("resnet8");
  TensorMap theirs = weights.others();
  theirs.erase("fc.weight");
  theirs.erase("fc.bias");
  SECTION("of other features") {
    theirs["projector.weight"] = at::zeros({5, 7});
  }
  SECTION("no matrix") {
    theirs["layer4.0.conv1.weight"] = at::zeros({64, 64, 3, 3});
  }
  SECTION("no weights") {
    theirs["queue"] = at::zeros({64, 5});
  }
  SECTION("two layers") {
    theirs["a.weight"] = at::zeros({5, 64});
    theirs["b.weight"] = at::zeros({5, 64});
  }
  CHECK_THROWS_WITH(weights.load(theirs, *weights.draw(2)), Contains("the model has no such tensor"));
}

TEST_CASE("where many names differ, those of the file and those of the model are both shown") {
  const Weights weights("resnet56");
  TensorMap theirs;
  int number = 0;
  for (const auto& [name, tensor] : weights.others()) theirs[fmt::format("layer_{}.w", number++)] = tensor;
  CHECK_THROWS_WITH(weights.load(theirs, *weights.draw(2)), Contains("layer_100.w: the model has no such tensor") &&
                                                                Contains("bn1.bias: missing") &&
                                                                Contains("more missing"));
}

TEST_CASE("weights of other floating-point types are converted") {
  const Weights weights("resnet8");
  for (const at::ScalarType type : {at::kHalf, at::kBFloat16, at::kDouble}) {
    TensorMap theirs = weights.others();
    for (auto& [name, tensor] : theirs) {
      if (tensor.is_floating_point()) tensor = tensor.to(type);
    }
    const auto model = weights.draw(2);
    CHECK(weights.load(theirs, *model)->drawn.empty());
    CHECK(
        at::equal(model->named_parameters()["layer2.0.conv1.weight"], theirs["layer2.0.conv1.weight"].to(at::kFloat)));
  }
}

TEST_CASE("weights that are not finite are refused by name") {
  const Weights weights("resnet8");
  TensorMap theirs = weights.others();
  theirs["layer1.0.conv1.weight"][0][0][0][0] = NAN;
  const auto model = weights.draw(2);
  CHECK_THROWS_WITH(weights.load(theirs, *model), Contains("layer1.0.conv1.weight holds values that are not finite"));
}

TEST_CASE("names that mean harm are shown escaped, and not all of them") {
  const Weights weights("resnet8");
  TensorMap theirs = weights.others();
  for (int i = 0; i < 100; ++i) theirs["\x1b[31m" + std::to_string(i)] = at::zeros({1});
  const auto model = weights.draw(2);
  CHECK_THROWS_WITH(weights.load(theirs, *model),
                    Contains("\\u001b[31m0") && !Contains("\x1b") && Contains("and 60 more"));
}

TEST_CASE("a file that cannot be used names the key, and one that is not there its source") {
  const Weights weights("resnet50");
  CHECK_THAT(missing_pretrained(models(), weights.config()),
             Contains("model.pretrained: there is no file") && Contains(weights.file()) &&
                 Contains("torchvision's ResNet50_Weights.IMAGENET1K_V1") &&
                 Contains("https://download.pytorch.org/models/resnet50-0676ba61.pth"));
  CHECK(missing_pretrained(models(), configured_model({"model.name=resnet50"})).empty());
  CHECK_THAT(missing_pretrained(models(), configured_model({"model.name=resnet8", "model.pretrained=x.safetensors"})),
             Contains("no file 'x.safetensors'") && !Contains("torchvision"));
  const auto missing = [](const std::string& file) {
    return missing_pretrained(models(), configured_model({"model.name=resnet8", "model.pretrained=" + file}));
  };
  CHECK_THAT(missing("/tmp"), Contains("'/tmp'") && Contains("is a folder"));
  CHECK_THAT(missing("~/x.safetensors"), Contains("~ is not replaced"));

  std::ofstream(weights.file()) << "no tensors";
  CHECK(missing_pretrained(models(), weights.config()).empty());
  const auto model = weights.draw(2);
  CHECK_THROWS_AS(load_pretrained(weights.config(), *model), KeyError);
  CHECK_FALSE(load_pretrained(configured_model({"model.name=resnet50"}), *model));
}

TEST_CASE("models for ImageNet's classes name their weights") {
  for (const ModelEntry& entry : models().entries()) {
    CAPTURE(entry.name);
    const bool has_source = !entry.pretrained.url.empty();
    CHECK(has_source == (entry.usual.num_classes == 1000));
    if (entry.pretrained.name.starts_with("torchvision")) {
      // The files of Inception-v3 and ShuffleNet have names of their own.
      const std::string name = entry.name == "shufflenet_v2_x1_0" ? "shufflenetv2_x1" : entry.name;
      CHECK_THAT(entry.pretrained.url, Contains("/models/" + name + "-") || Contains("/models/" + name + "_rw") ||
                                           Contains("/models/" + name + "_google-"));
    }
  }
}

}  // namespace
}  // namespace settrain
