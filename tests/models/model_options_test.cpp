#include "models/model_options.h"

#include "src/config/load.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

using Catch::Contains;

config::Config load_model(std::vector<std::string> settings) {
  static const ModelRegistry registry = [] {
    ModelRegistry all("model");
    register_builtin_models(all);
    return all;
  }();
  settings.insert(settings.begin(), "model.pretrained=weights.pth");
  return config::load({{model_section(registry)}, {model_rule, trainable_rule(registry)}}, {}, settings);
}

TEST_CASE("parts that are trained are known before data are, and a wrong one is told with the nearest") {
  const auto trains = [](const std::string& model, const std::string& parts) {
    return load_model({"model.name=" + model, "model.trainable=" + parts});
  };
  CHECK_NOTHROW(trains("resnet18", "[head, norm, layer4]"));
  CHECK_NOTHROW(trains("vit_b_16", "[head, encoder.ln, 'encoder.layers.encoder_layer_1?']"));
  CHECK_NOTHROW(trains("densenet40_12", "['*.bn1']"));
  CHECK_NOTHROW(trains("convnext_tiny", "[norm]"));
  CHECK_NOTHROW(load_model({"model.name=vit", "model.patch=20", "model.trainable=[head, blocks.11]"}));
  CHECK_THROWS_WITH(trains("resnet18", "[head, layer5]"),
                    Contains("model.trainable") && Contains("layer5") && Contains("resnet18"));
  CHECK_THROWS_WITH(trains("resnet18", "[head, layer4.0.cnov1]"), Contains("'layer4.0.conv1'"));
  CHECK_THROWS_WITH(trains("resnet18", "[heads]"), Contains("'head'"));
  CHECK_THROWS_WITH(trains("resnet18", "[fc]"), Contains("names no parameter"));
  CHECK_THROWS_WITH(trains("resnet18", "['']"), Contains("model.trainable"));
  CHECK_THROWS_WITH(trains("resnet18", "[body, layer4]"), Contains("layer4"));
  CHECK_THROWS_WITH(trains("resnet18", "[norm, norm]"), Contains("model.trainable"));
  CHECK_THROWS_WITH(trains("resnet18", "[]"), Contains("model.trainable"));
}

TEST_CASE("keys of a network that cannot be built are told where its parts are looked up") {
  CHECK_THROWS_WITH(load_model({"model.name=densenet", "model.depth=41", "model.trainable=[head, block3]"}),
                    Contains("model.depth"));
}

TEST_CASE("what a body that is trained in part cannot have is refused") {
  const std::vector<std::string> part{"model.name=resnet18", "model.trainable=[head, layer4]"};
  const auto with = [&](const std::string& setting) {
    std::vector<std::string> settings = part;
    settings.push_back(setting);
    return load_model(settings);
  };
  CHECK_NOTHROW(with("model.sync_batch_norm=true"));
  CHECK_THROWS_WITH(with("model.head=scaled"), Contains("model.head"));
  CHECK_THROWS_WITH(with("model.pretrained=none"), Contains("model.trainable"));
}

TEST_CASE("an adapter is trained with the head unless told otherwise, and never beside a whole body") {
  const auto with = [](const std::string& kind, const std::vector<std::string>& settings) {
    std::vector<std::string> all{"model.name=vit_small_patch14_reg4_dinov2", "model.adapter.kind=" + kind};
    all.insert(all.end(), settings.begin(), settings.end());
    return load_model(all);
  };
  CHECK(trained_parts(with("lora", {})) == config::Texts{"adapter", "head"});
  CHECK(trained_parts(with("none", {})) == config::Texts{"body", "head"});
  CHECK(trained_parts(with("adaptformer", {"model.trainable=[head, adapter, norm]"})).size() == 3);
  CHECK_THROWS_WITH(with("lora", {"model.trainable=[body, head]"}),
                    Contains("model.adapter.kind") && Contains("[adapter, head]"));
  CHECK_THROWS_WITH(with("lora", {"model.trainable=[head, norm]"}), Contains("model.adapter.kind"));
  CHECK_THROWS_WITH(with("none", {"model.trainable=[adapter, head]"}), Contains("'adapter'"));
  CHECK_THROWS_WITH(with("lora", {"model.pretrained=none"}), Contains("model.trainable"));
  CHECK_THROWS_WITH(with("none", {"model.adapter.rank=4"}), Contains("model.adapter.rank"));
  CHECK_THROWS_WITH(with("adaptformer", {"model.adapter.alpha=4"}), Contains("model.adapter.alpha"));
  CHECK_THROWS_WITH(with("lora", {"model.adapter.scale=4"}), Contains("model.adapter.scale"));
  CHECK_THROWS_WITH(with("lora", {"model.adapter.rank=0"}), Contains("model.adapter.rank"));
  CHECK_THROWS_WITH(load_model({"model.name=resnet18", "model.adapter.kind=lora"}), Contains("model.adapter"));
}

}  // namespace
}  // namespace settrain
