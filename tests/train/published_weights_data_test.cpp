// A published checkpoint of other people's, on the images and with the logits that came with it.
#include <ATen/ATen.h>

#include <catch2/catch.hpp>
#include <cstring>

#include "models/model.h"
#include "models/model_options.h"
#include "src/config/load.h"
#include "src/train/pretrained.h"
#include "tests/support/read_file.h"
#include "tests/support/skip.h"

namespace settrain {
namespace {

constexpr int64_t kImages = 64, kCifarClasses = 10, kPixels = 3 * 32 * 32;

// Records of a label and the red, green and blue planes, normalised as its authors did.
at::Tensor images_of(const std::string& records) {
  at::Tensor bytes = at::empty({kImages, 1 + kPixels}, at::kByte);
  REQUIRE(records.size() >= static_cast<size_t>(bytes.numel()));
  std::memcpy(bytes.mutable_data_ptr(), records.data(), static_cast<size_t>(bytes.numel()));
  const at::Tensor pixels = bytes.slice(1, 1).to(at::kFloat).view({kImages, 3, 32, 32}) / 255;
  const at::Tensor mean = at::tensor({0.485F, 0.456F, 0.406F}).view({3, 1, 1});
  const at::Tensor deviation = at::tensor({0.229F, 0.224F, 0.225F}).view({3, 1, 1});
  return (pixels - mean) / deviation;
}

}  // namespace

TEST_CASE("CIFAR-10's ResNet-20 of a legacy file gives its recorded logits", "[data]") {
  const std::string data = test::environment("SETTRAIN_TEST_DATA");
  const std::filesystem::path folder = std::filesystem::path(data) / "cifar10-resnet20";
  SKIP_UNLESS(!data.empty() && exists(folder), "SETTRAIN_TEST_DATA has no cifar10-resnet20");
  ModelRegistry models("model");
  register_builtin_models(models);
  const std::string file = (folder / "resnet20-12fca82f.th").string();
  const config::Config config = config::load({{model_section(models)}, {}}, {}, {"model.pretrained=" + file});
  const auto model = models.at("resnet20").make(config, {kCifarClasses, 3, 32, 32});
  const auto loaded = load_pretrained(config, *model);
  REQUIRE(loaded);
  CHECK(loaded->drawn.empty());
  CHECK(loaded->num_tensors == 97);
  CHECK(loaded->from == "its key state_dict, without the prefix module.");

  at::NoGradGuard no_grad;
  model->eval();
  const at::Tensor logits = model->forward(images_of(test::read_file(folder / "cifar10_test_first512.bin"))).scores;
  const std::string recorded = test::read_file(folder / "resnet20_logits_first64.f32");
  at::Tensor expected = at::empty({kImages, kCifarClasses});
  REQUIRE(recorded.size() == expected.nbytes());
  std::memcpy(expected.mutable_data_ptr(), recorded.data(), recorded.size());
  CHECK((logits - expected).abs().max().item<double>() < 1e-4);  // of logits up to 20, in float32
  CHECK(at::equal(logits.argmax(1), expected.argmax(1)));
}

}  // namespace settrain
