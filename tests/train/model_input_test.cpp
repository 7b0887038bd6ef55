#include "src/train/model_input.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "datasets/decoding/decode_image.h"
#include "datasets/load_data.h"
#include "src/checkpoint/tensor_file.h"
#include "src/config/load.h"
#include "src/core/error.h"
#include "src/loader/pipeline.h"
#include "src/train/experiment_schema.h"
#include "tests/support/builtin_registries.h"
#include "tests/support/catch2.h"
#include "tests/support/temporary_folder.h"

namespace settrain {
namespace {

using Catch::Contains;
using test::builtin_registries;

// Two classes of images in files.
class FolderOfImages {
 public:
  void add(const std::string& name, int64_t height, int64_t width) const {
    const Image image{height, width, 3, std::vector<uint8_t>(static_cast<size_t>(height * width * 3), 7)};
    const std::vector<uint8_t> png = encode_png(image);
    write(name, {png.begin(), png.end()});
  }
  void write(const std::string& name, const std::string& bytes) const { folder_.write("images/" + name, bytes); }

  // One image of each class in each split, but for what is there.
  void fill(int64_t height, int64_t width) const {
    for (const std::string split : {"train", "val", "test"}) {
      for (const std::string name : {"a", "b"}) add(split + "/" + name + "/1.png", height, width);
    }
  }

  std::filesystem::path file(const std::string& name) const { return folder_ / name; }

  ModelInput choose(std::vector<std::string> settings = {}, const RecordedInput* recorded = nullptr) const {
    settings.insert(settings.begin(), {"data.name=image_folder", "data.root=" + (folder_ / "images").string(),
                                       "data.workers=2", "model.name=resnet8"});
    const config::Config config = config::load(experiment_schema(builtin_registries()), {}, settings);
    const LoadedData data = load_data(builtin_registries().datasets, config);
    return choose_input(builtin_registries().datasets, builtin_registries().models, config, data.dataset, recorded);
  }

 private:
  test::TemporaryFolder folder_;
};

std::string all_remarks(const ModelInput& input) {
  return fmt::format("{}", fmt::join(input.remarks, "\n"));
}

std::string all_warnings(const ModelInput& input) {
  return fmt::format("{}", fmt::join(input.warnings, "\n"));
}

ModelCard card_with(const std::vector<float>& mean, const std::vector<float>& std, int64_t side) {
  ModelCard card;
  card.dataset = "x";
  card.class_names = {"a", "b"};
  card.train_counts = {1, 1};
  card.channels = std::ssize(mean);
  card.input_height = card.input_width = side;
  card.mean = mean;
  card.std = std;
  card.head = "linear";
  return card;
}

std::string with_card(const FolderOfImages& images, const ModelCard& card) {
  const std::string file = images.file("weights.safetensors").string();
  write_tensor_file(file, {{"fc.weight", at::ones({2, 2})}}, {{"config", "name: x"}, {"card", to_text(card)}});
  return "model.pretrained=" + file;
}

std::string foreign(const FolderOfImages& images) {
  const std::string file = images.file("foreign.safetensors").string();
  write_tensor_file(file, {{"fc.weight", at::ones({2, 2})}}, {{"format", "pt"}});
  return "model.pretrained=" + file;
}

const Normalisation kNone{{0, 0, 0}, {1, 1, 1}};
const Normalisation kImagenets{{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};

}  // namespace

TEST_CASE("the input is of the images' size where all are squares of one size up to 224 pixels") {
  const auto [height, width, expected] = GENERATE(
      std::tuple<int64_t, int64_t, int64_t>{32, 32, 32}, std::tuple<int64_t, int64_t, int64_t>{224, 224, 224},
      std::tuple<int64_t, int64_t, int64_t>{8, 8, 8}, std::tuple<int64_t, int64_t, int64_t>{3, 3, 224},
      std::tuple<int64_t, int64_t, int64_t>{225, 225, 224}, std::tuple<int64_t, int64_t, int64_t>{32, 48, 224});
  CAPTURE(height, width);
  const FolderOfImages images;
  images.fill(height, width);
  const ModelInput input = images.choose();
  CHECK(input.size == expected);
  CHECK_THAT(all_remarks(input), Contains(std::to_string(expected)));
  if (expected == 224 && height != 224) CHECK_THAT(all_remarks(input), Contains(fmt::format("{}x{}", height, width)));
}

TEST_CASE("one image of another size, in any split, makes the input 224; one that cannot be read does not count") {
  const std::string split = GENERATE("train", "val", "test");
  const FolderOfImages images;
  images.fill(32, 32);
  images.write(split + "/b/broken.png", "no image");
  CHECK(images.choose().size == 32);
  for (int i = 0; i < 100; ++i) images.add(fmt::format("train/a/{}.png", 100 + i), 32, 32);
  CHECK(images.choose().size == 32);
  images.add(split + "/b/9.png", 33, 33);
  const ModelInput input = images.choose();
  CHECK(input.size == 224);
  CHECK_THAT(all_remarks(input), Contains("32x32") && Contains("33x33") && Contains(split + "/b/9.png"));
}

TEST_CASE("images of one size do not decide for pipelines that cut crops out, nor against the config") {
  const FolderOfImages images;
  images.fill(32, 32);
  for (const char* pipeline : {"plantnet", "imagenet", "imagenet2018"}) {
    CAPTURE(pipeline);
    CHECK(images.choose({std::string("data.pipeline=") + pipeline}).size == 224);
  }
  CHECK(images.choose({"data.pipeline=cifar"}).size == 32);
  CHECK(images.choose({"data.input_size=16"}).size == 16);
  CHECK(images.choose({"data.input_size=16"}).remarks.empty());
}

TEST_CASE("a model that does not take the images' size has the usual input") {
  const FolderOfImages images;
  images.fill(40, 40);
  CHECK(images.choose({"model.name=vit_b_16"}).size == 224);
  CHECK_THAT(all_remarks(images.choose({"model.name=vit_b_16"})), Contains("vit_b_16") && Contains("40x40"));
  CHECK(images.choose({"model.name=convnext_tiny"}).size == 40);
  CHECK(images.choose({"model.name=vit_small_patch14_dinov2"}).size == 518);  // that of the model
  CHECK(images.choose({"model.name=vit_small_patch14_dinov2", "data.pipeline=imagenet"}).size == 518);
  const FolderOfImages small;
  small.fill(16, 16);
  CHECK(small.choose({"model.name=vit_b_16"}).size == 16);
  CHECK(small.choose({"model.name=convnext_tiny"}).size == 224);
  CHECK(small.choose({"model.name=densenet121"}).size == 224);  // its poolings leave nothing
}

TEST_CASE("a data set that gives its images' size keeps it") {
  const config::Config config =
      config::load(experiment_schema(builtin_registries()), {}, {"data.name=synthetic", "data.image_size=12"});
  const LoadedData data = load_data(builtin_registries().datasets, config);
  const ModelInput input =
      choose_input(builtin_registries().datasets, builtin_registries().models, config, data.dataset, nullptr);
  CHECK(input.size == PipelineOptions::kAuto);
  CHECK(input.remarks.empty());
}

TEST_CASE("auto is what the weights' card says") {
  const FolderOfImages images;
  images.fill(32, 32);
  const std::string weights = with_card(images, card_with(kImagenets.mean, kImagenets.std, 48));
  const ModelInput input = images.choose({weights});
  CHECK(input.size == 48);
  CHECK(input.normalisation == kImagenets);
  CHECK_THAT(all_remarks(input), Contains("48") && Contains("imagenet"));
  CHECK(input.warnings.empty());

  // Statistics that have no name are taken by their numbers.
  const std::string own = with_card(images, card_with({0.1F, 0.2F, 0.3F}, {0.5F, 0.5F, 0.5F}, 32));
  CHECK(images.choose({own}).normalisation == Normalisation{{0.1F, 0.2F, 0.3F}, {0.5F, 0.5F, 0.5F}});
  CHECK_THAT(all_remarks(images.choose({own})), Contains("0.1, 0.2, 0.3"));
}

TEST_CASE("a normalisation that is not the weights' is kept where the config asks for it, and warned of") {
  const FolderOfImages images;
  images.fill(32, 32);
  const std::string weights = with_card(images, card_with(kImagenets.mean, kImagenets.std, 32));
  const ModelInput input = images.choose({weights, "data.normalisation=none"});
  CHECK(input.normalisation == kNone);
  CHECK_THAT(all_warnings(input), Contains("data.normalisation") && Contains("none") && Contains("imagenet"));
  CHECK(images.choose({weights, "data.normalisation=imagenet"}).warnings.empty());
}

TEST_CASE("weights of others are ImageNet's for models that are published with such, and else unknown") {
  const FolderOfImages images;
  images.fill(32, 32);
  const std::string weights = foreign(images);
  const ModelInput published = images.choose({weights, "model.name=resnet18"});
  CHECK(published.size == 224);
  CHECK(published.normalisation == kImagenets);
  CHECK(published.warnings.empty());
  CHECK_FALSE(images.choose({weights, "model.name=resnet18", "data.normalisation=cifar10"}).warnings.empty());

  const ModelInput unknown = images.choose({weights});
  CHECK(unknown.size == 32);
  CHECK(unknown.normalisation == kNone);
  CHECK_THAT(all_warnings(unknown), Contains("data.normalisation") && Contains("foreign.safetensors"));
  CHECK(images.choose({weights, "data.normalisation=none"}).warnings.empty());

  // A run of settrain that recorded no card is not taken for the published weights.
  write_tensor_file(images.file("early.safetensors").string(), {{"a", at::ones({1})}}, {{"config", "name: x"}});
  const std::string early = "model.pretrained=" + images.file("early.safetensors").string();
  CHECK(images.choose({early, "model.name=resnet18"}).normalisation == kNone);
}

TEST_CASE("images are resized as for the weights, unless the config says otherwise") {
  const FolderOfImages images;
  images.fill(32, 32);
  const auto check = [&](std::vector<std::string> settings, const std::string& interpolation, double crop_share) {
    const ModelInput input = images.choose(std::move(settings));
    PipelineOptions pipeline;
    input.resolve(pipeline);
    CHECK(pipeline.interpolation == interpolation);
    CHECK(pipeline.crop_share == Approx(crop_share));
    CHECK(pipeline.input_size == input.size);
    return input;
  };
  CHECK(check({}, "bilinear", 0).remarks.size() == 1);  // of the size
  const std::string weights = foreign(images);
  check({weights}, "bilinear", 0);  // of a model that is not published
  check({weights, "model.name=resnet18"}, "bilinear", 0.875);
  const double share = 224.0 / 230;
  const std::string plain = all_remarks(check({weights, "model.name=convnext_small"}, "bilinear", share));
  CHECK_THAT(plain, !Contains("resize_size"));  // the pipeline cuts nothing off
  const std::string small =
      all_remarks(check({weights, "model.name=convnext_small", "data.pipeline=imagenet"}, "bilinear", share));
  CHECK_THAT(small, Contains("resize_size") && Contains("0.974") && !Contains("interpolation"));
  const ModelInput lite = check({weights, "model.name=efficientnet_lite0"}, "bicubic", 0.875);
  CHECK_THAT(all_remarks(lite), Contains("bicubic") && Contains("efficientnet_lite") && !Contains("resize_size"));
  check({weights, "model.name=efficientnet_lite0", "data.interpolation=bilinear"}, "bilinear", 0.875);
  CHECK(check({weights, "model.name=efficientnet_v2_s"}, "bilinear", 1).size == 384);
  CHECK(check({weights, "model.name=efficientnet_b3"}, "bicubic", 300.0 / 320).size == 300);
  check({"data.interpolation=bicubic"}, "bicubic", 0);

  ModelCard card = card_with(kImagenets.mean, kImagenets.std, 48);
  card.interpolation = "bicubic";
  card.crop_share = 0.9;
  check({with_card(images, card)}, "bicubic", 0.9);
  const RecordedInput recorded = RecordedInput::of(card);
  const ModelInput again = images.choose({weights, "model.name=resnet18"}, &recorded);
  CHECK(again.interpolation == "bicubic");
  CHECK(again.crop_share == 0.9);
  CHECK(again.remarks.empty());
  CHECK(images.choose({"data.interpolation=bilinear"}, &recorded).interpolation == "bilinear");
}

TEST_CASE("weights for grey images do not normalise coloured ones, and the other way about") {
  const FolderOfImages images;
  images.fill(32, 32);
  const std::string weights = with_card(images, card_with({0.5F}, {0.2F}, 32));
  CHECK(images.choose({weights}).normalisation == kNone);
  CHECK(images.choose({weights, "data.grey=true"}).normalisation == Normalisation{{0.5F}, {0.2F}});
  CHECK(images.choose({foreign(images), "model.name=resnet18", "data.grey=true"}).normalisation ==
        Normalisation{{0}, {1}});
}

TEST_CASE("a damaged card is an error of the key") {
  const FolderOfImages images;
  images.fill(32, 32);
  const std::string file = images.file("bad.safetensors").string();
  write_tensor_file(file, {{"a", at::ones({1})}}, {{"config", "name: x"}, {"card", "{"}});
  CHECK_THROWS_AS(images.choose({"model.pretrained=" + file}), KeyError);
}

TEST_CASE("what a run was trained with decides what auto was") {
  const FolderOfImages images;
  images.fill(32, 32);
  const std::string weights = with_card(images, card_with(kImagenets.mean, kImagenets.std, 48));
  const RecordedInput recorded = RecordedInput::of(card_with({0.1F, 0.2F, 0.3F}, {1, 1, 1}, 224)), early;
  const ModelInput input = images.choose({weights}, &recorded);
  CHECK(input.size == 224);
  CHECK(input.normalisation == recorded.normalisation);
  CHECK(input.remarks.empty());
  CHECK(images.choose({weights}, &early).size == 224);
  CHECK(images.choose({weights}, &early).normalisation == kNone);
  CHECK(images.choose({"data.input_size=16", "data.normalisation=imagenet"}, &recorded).size == 16);
  CHECK(images.choose({"data.input_size=16", "data.normalisation=imagenet"}, &recorded).normalisation == kImagenets);
}

}  // namespace settrain
