// Weights go from torchvision's models to ours and back, without a bit changed.
#include <ATen/ATen.h>

#include <cstdlib>

#include "models/model.h"
#include "models/model_options.h"
#include "models/named_tensors.h"
#include "src/checkpoint/checkpoint.h"
#include "src/config/load.h"
#include "src/inference/export_weights.h"
#include "src/train/pretrained.h"
#include "tests/support/catch2.h"
#include "tests/support/skip.h"
#include "tests/support/temporary_folder.h"

namespace settrain {
namespace {

constexpr int64_t kExportedClasses = 7;

bool run_python(const std::string& arguments) {
  const std::string script = test::environment("SETTRAIN_SOURCE_DIR") + "/tests/inference/torchvision_weights.py ";
  return std::system((test::environment("SETTRAIN_PYTHON") + " " + script + arguments).c_str()) == 0;
}

std::shared_ptr<Model> draw(const std::string& name, const std::string& pretrained, std::optional<Pretrained>& loaded) {
  ModelRegistry models("model");
  register_builtin_models(models);
  const config::Config config =
      config::load({{model_section(models)}, {}}, {}, {"model.name=" + name, "model.pretrained=" + pretrained});
  at::manual_seed(1);
  auto model = models.at(name).make(config, {kExportedClasses, 3, 64, 64});
  loaded = load_pretrained(config, *model);
  return model;
}

}  // namespace

TEST_CASE("files that torch.save wrote of torchvision's models are loaded to the bit", "[slow]") {
  SKIP_UNLESS(!test::environment("SETTRAIN_PYTHON").empty(), "SETTRAIN_PYTHON is not set");
  const test::TemporaryFolder folder;
  const std::string file = (folder / "weights").string();
  const auto [name, form] = GENERATE(std::pair<std::string, std::string>{"resnet18", "zip"},
                                     std::pair<std::string, std::string>{"densenet121", "legacy"});
  CAPTURE(name, form);
  REQUIRE(run_python("make " + name + " " + file + " " + form));
  std::optional<Pretrained> loaded;
  const auto model = draw(name, file + ".pth", loaded);
  REQUIRE(loaded);
  CHECK(loaded->drawn.empty());
  const TensorMap theirs = read_safetensors(file + ".safetensors").tensors;
  const NamedTensors ours = state_dict(*model);
  REQUIRE(ours.size() == theirs.size());
  for (const auto& [key, tensor] : ours) {
    CAPTURE(key);
    CHECK(at::equal(tensor, theirs.at(key)));
  }
}

TEST_CASE("exported weights give the same logits in torchvision's models", "[slow]") {
  SKIP_UNLESS(!test::environment("SETTRAIN_PYTHON").empty(), "SETTRAIN_PYTHON is not set");
  const std::string name = GENERATE(as<std::string>{}, "resnet18", "densenet121", "convnext_tiny");
  CAPTURE(name);
  const test::TemporaryFolder folder;
  std::optional<Pretrained> loaded;
  const auto model = draw(name, "none", loaded);
  model->eval();
  Checkpoint checkpoint;
  checkpoint.add("model.", state_dict(*model));
  checkpoint.set_integer("state.epoch", 1);
  checkpoint.metadata["config"] = "seed: 4\n";
  save_checkpoint(folder / "last.safetensors", checkpoint);
  export_weights(load_checkpoint(folder / "last.safetensors"), folder / "weights.safetensors");
  const at::Tensor images = at::rand({2, 3, 64, 64});
  write_tensor_file(folder / "images.safetensors", {{"images", images}});
  const auto place = [&folder](const char* file) { return " " + (folder / file).string() + ".safetensors"; };
  REQUIRE(run_python("logits " + name + place("weights") + place("images") + place("logits")));
  at::NoGradGuard no_grad;
  const at::Tensor ours = model->forward(images).scores;
  const at::Tensor theirs = read_safetensors(folder / "logits.safetensors").tensors.at("logits");
  CHECK((ours - theirs).abs().max().item<double>() < 1e-5);
}

}  // namespace settrain
