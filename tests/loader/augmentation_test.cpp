// Draws of strong augmentation, beside torchvision's transforms with the same random numbers.
#include "src/loader/augmentation.h"

#include <cmath>
#include <map>
#include <set>

#include "src/core/error.h"
#include "src/loader/transform.h"
#include "tests/loader/augmentation_golden.h"
#include "tests/loader/render.h"
#include "tests/support/catch2.h"

using namespace settrain;
using Catch::Contains;

namespace {

AugmentationOptions augmented_by(const nlohmann::json& settings) {
  AugmentationOptions options;
  options.augment = settings.value("augment", options.augment);
  options.rotate = settings.value("augmentation.rotate", 0.0);
  options.brightness = settings.value("augmentation.brightness", 0.0);
  options.contrast = settings.value("augmentation.contrast", 0.0);
  options.saturation = settings.value("augmentation.saturation", 0.0);
  options.hue = settings.value("augmentation.hue", 0.0);
  return options;
}

Pipeline training_pipeline_of(const AugmentationOptions& augmentation, int64_t height, int64_t width,
                              uint64_t seed = 1) {
  PipelineOptions options;
  options.augmentation = augmentation;
  return {options, height, width, ViewUse::kTraining, seed};
}

// One image under every id.
class TheImage : public ImageSource {
 public:
  explicit TheImage(Image image) : image_(std::move(image)) {}
  int64_t size() const override { return 1 << 20; }
  void read(int64_t, Image& image) const override { image = image_; }

 private:
  Image image_;
};

std::vector<Box> erased_boxes(const AugmentationOptions& options, int64_t height, int64_t width) {
  const Augmentation augmentation(options);
  std::vector<Box> boxes;
  for (int64_t id = 0; id < 2000; ++id) {
    const PixelChanges changes = augmentation.draw(height, width, {3, 1, id, 0});
    boxes.insert(boxes.end(), changes.erased.begin(), changes.erased.end());
  }
  return boxes;
}

}  // namespace

TEST_CASE("policies, rotations and jitter give torchvision's bytes for the same drawn numbers") {
  const nlohmann::json golden = test::augmentation_golden();
  REQUIRE(golden["chains"].size() == 31);
  for (const auto& recorded : golden["chains"]) {
    CAPTURE(recorded["image"].dump(), recorded["settings"].dump());
    const Image image = test::image_by_formula(recorded["image"]);
    const TheImage source(image);
    const Transform transform(
        training_pipeline_of(augmented_by(recorded["settings"]), image.height, image.width, recorded["seed"]),
        test::identity(image.channels), {PixelType::kByte, /*channels_last=*/true});
    TransformMemory memory;
    std::vector<uint8_t> pixels(image.pixels.size());
    Sha256 sha;
    for (int64_t id = 0; id < recorded["draws"]; ++id) {
      transform(source, id, recorded["epoch"], memory, pixels.data());
      sha.add(pixels);
    }
    CHECK(test::half_hex(sha) == recorded["sha256"].get<std::string>());
  }
}

TEST_CASE("draws follow seed, epoch, sample and repetition, and nothing else") {
  const Augmentation augmentation(augmented_by({{"augment", "rand(3, 9)"}, {"augmentation.rotate", 20}}));
  const auto draw = [&](const AugmentationKey& key) { return augmentation.draw(32, 32, key).operations; };
  const AugmentationKey key{5, 2, 11, 1};
  CHECK((draw(key) == draw(key)));
  for (const AugmentationKey& other : {AugmentationKey{6, 2, 11, 1}, {5, 3, 11, 1}, {5, 2, 12, 1}, {5, 2, 11, 0}})
    CHECK((draw(key) != draw(other)));
}

TEST_CASE("without a key there are no changes, and evaluation has none") {
  CHECK_FALSE(Augmentation(AugmentationOptions{}).is_on());
  CHECK_FALSE(Augmentation().is_on());
  const AugmentationOptions trivial = augmented_by({{"augment", "trivial"}});
  CHECK(training_pipeline_of(trivial, 32, 32).is_random());
  PipelineOptions options;
  options.augmentation = trivial;
  const Pipeline evaluation(options, 32, 32, ViewUse::kEvaluation);
  CHECK_FALSE(evaluation.is_random());
  for (int64_t id = 0; id < 50; ++id) CHECK(evaluation.changes_of(0, id).empty());
  for (const char* key : {"augmentation.rotate", "augmentation.brightness", "augmentation.contrast",
                          "augmentation.saturation", "augmentation.hue"}) {
    CAPTURE(key);
    CHECK(Augmentation(augmented_by({{key, 0.5}})).is_on());
    CHECK(Augmentation(augmented_by({{key, 0.5}})).draw(8, 8, {}).operations.size() == 1);
  }
}

TEST_CASE("jitter comes in all 24 orders") {
  const Augmentation augmentation(augmented_by({{"augmentation.brightness", 0.1},
                                                {"augmentation.contrast", 0.1},
                                                {"augmentation.saturation", 0.1},
                                                {"augmentation.hue", 0.1}}));
  std::map<std::vector<OperationKind>, int64_t> orders;
  for (int64_t id = 0; id < 4800; ++id) {
    std::vector<OperationKind> order;
    for (const ImageOperation& operation : augmentation.draw(8, 8, {1, 0, id, 0}).operations)
      order.push_back(operation.kind);
    ++orders[order];
  }
  CHECK(orders.size() == 24);
  for (const auto& [order, count] : orders) CHECK(std::abs(count - 200) < 70);  // 5 standard deviations
}

TEST_CASE("random erasing takes 2 to 33 % of the area, with the wanted probability") {
  AugmentationOptions options;
  options.erase = 0.25;
  const std::vector<Box> boxes = erased_boxes(options, 60, 90);
  CHECK(std::abs(std::ssize(boxes) - 500) < 97);  // 5 standard deviations
  double area = 0;
  std::set<int64_t> tops;
  for (const Box& box : boxes) {
    CHECK((box.top >= 0 && box.left >= 0 && box.top + box.height <= 60 && box.left + box.width <= 90));
    const double ratio = static_cast<double>(box.height) / static_cast<double>(box.width);
    CHECK((ratio > 0.25 && ratio < 4));  // of sides that are rounded
    area += static_cast<double>(box.height * box.width) / 5400;
    tops.insert(box.top);
  }
  area /= static_cast<double>(boxes.size());
  CHECK((area > 0.14 && area < 0.19));  // the mean of uniform shares is 0.175, but the largest do not always fit
  CHECK(tops.size() > 40);
}

TEST_CASE("cutout erases a square around any pixel") {
  AugmentationOptions options;
  options.cutout = 16;
  const std::vector<Box> boxes = erased_boxes(options, 32, 32);
  REQUIRE(boxes.size() == 2000);
  std::set<int64_t> heights;
  for (const Box& box : boxes) {
    CHECK((box.top >= 0 && box.left >= 0 && box.top + box.height <= 32 && box.left + box.width <= 32));
    heights.insert(box.height);
  }
  CHECK((*heights.begin() == 8 && *heights.rbegin() == 16 && heights.size() == 9));
}

TEST_CASE("erased pixels have the mean's nearest byte, or are black") {
  const Normalisation statistics{{0.5F, 0.25F, 1.0F}, {1.0F, 1.0F, 1.0F}};
  for (const EraseFill fill : {EraseFill::kMean, EraseFill::kBlack}) {
    AugmentationOptions options;
    options.cutout = 4;
    options.erase_fill = fill;
    const Transform transform(training_pipeline_of(options, 4, 4), statistics, {PixelType::kByte, true});
    const TheImage source(Image{4, 4, 3, std::vector<uint8_t>(48, 7)});
    TransformMemory memory;
    std::vector<uint8_t> pixels(48);
    int64_t erased = 0;
    for (int64_t id = 0; id < 20; ++id) {
      transform(source, id, 0, memory, pixels.data());
      const std::vector<uint8_t> filled =
          fill == EraseFill::kMean ? std::vector<uint8_t>{128, 64, 255} : std::vector<uint8_t>{0, 0, 0};
      for (size_t i = 0; i < pixels.size(); i += 3) {
        const std::vector<uint8_t> pixel(pixels.begin() + i, pixels.begin() + i + 3);
        const bool is_filled = pixel == filled;
        erased += is_filled;
        CHECK((is_filled || pixel == std::vector<uint8_t>{7, 7, 7}));
      }
    }
    CHECK(erased > 20 * 4);
  }
}

TEST_CASE("a changed view is normalised as any other") {
  const AugmentationOptions options = augmented_by({{"augment", "rand(2, 20)"}});
  const Image image = test::image_by_formula({"noise", 16, 16, 3});
  const Normalisation statistics{{0.5F, 0.4F, 0.3F}, {0.2F, 0.3F, 0.4F}};
  const Transform as_bytes(training_pipeline_of(options, 16, 16), statistics, {PixelType::kByte, true});
  const Transform as_floats(training_pipeline_of(options, 16, 16), statistics, {PixelType::kFloat, false});
  const TheImage source(image);
  TransformMemory memory;
  std::vector<uint8_t> bytes(768);
  std::vector<float> floats(768);
  for (int64_t id = 0; id < 30; ++id) {
    as_bytes(source, id, 0, memory, bytes.data());
    as_floats(source, id, 0, memory, floats.data());
    for (size_t i = 0; i < 256; ++i) {
      for (size_t c = 0; c < 3; ++c) {
        const float value = static_cast<float>(bytes[3 * i + c]) / 255.0F;
        CHECK(floats[c * 256 + i] == (value - statistics.mean[c]) / statistics.std[c]);
      }
    }
  }
}

TEST_CASE("data.augment takes its words and numbers alone") {
  for (const char* text :
       {"none", "trivial", "rand(2, 9)", "rand(1,0)", "rand( 16 , 30 )", "auto_imagenet", "auto_cifar"})
    CHECK_NOTHROW(Augmentation(augmented_by({{"augment", text}})));
  for (const char* text : {"rand", "rand()", "rand(2)", "rand(2, 9", "rand(0, 9)", "rand(17, 9)", "rand(2, 31)",
                           "rand(2, -1)", "rand(2.5, 9)", "rand(2, 9, 1)", "rand 2, 9", "rand(a, b)"}) {
    CAPTURE(text);
    CHECK_THROWS_WITH(Augmentation(augmented_by({{"augment", text}})),
                      Contains("data.augment: '") && Contains("1 to 16 operations and a magnitude of 0 to 30"));
  }
  CHECK_THROWS_WITH(Augmentation(augmented_by({{"augment", "triviall"}})), Contains("did you mean 'trivial'?"));
  CHECK_THROWS_WITH(Augmentation(augmented_by({{"augment", "svhn"}})),
                    Contains("is none of none, trivial, rand(n, m)"));
}

TEST_CASE("what images or inputs cannot take is refused by its key") {
  AugmentationOptions options;
  options.cutout = 33;
  CHECK_THROWS_WITH(training_pipeline_of(options, 32, 48), Contains("data.augmentation.cutout: 33 pixels are more"));
  PipelineOptions evaluated;
  evaluated.augmentation = options;
  CHECK_NOTHROW(Pipeline(evaluated, 32, 48, ViewUse::kEvaluation));
  for (const char* key : {"augmentation.saturation", "augmentation.hue"}) {
    const Pipeline pipeline = training_pipeline_of(augmented_by({{key, 0.2}}), 8, 8);
    CHECK_THROWS_WITH(Transform(pipeline, test::identity(1)),
                      Contains(std::string("data.") + key + ": the images are grey"));
    CHECK_NOTHROW(Transform(pipeline, test::identity(3)));
  }
}
