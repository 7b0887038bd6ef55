#include "src/loader/resident_images.h"

#include <ATen/ATen.h>

#include <stdexcept>

#include "src/loader/loader.h"
#include "tests/loader/resident_loaders.h"
#include "tests/support/catch2.h"

using namespace settrain;

namespace {

// Checks one pipeline in every layout, for grey and colour images.
void check_pipeline(int64_t height, int64_t width, const PipelineOptions& options, ViewUse use) {
  CAPTURE(height, width, options.pipeline, options.pad, options.flip, options.input_size, static_cast<int>(use));
  for (const int64_t channels : {1, 3}) {
    for (const bool channels_last : {false, true}) {
      CAPTURE(channels, channels_last);
      const test::LoaderPair loaders(test::random_split(height, width, channels), options, use, channels_last,
                                     at::kCPU);
      test::check_equal(loaders, /*epochs=*/4);
    }
  }
}

PipelineOptions pipeline(const std::string& name, int64_t pad, config::Switch flip) {
  PipelineOptions options;
  options.pipeline = name;
  options.pad = pad;
  options.flip = flip;
  return options;
}

// Cuts squares of that side out of images whose shorter side stays as it is.
PipelineOptions cut_out(const std::string& name, int64_t shorter_side, int64_t side) {
  PipelineOptions options;
  options.pipeline = name;
  options.input_size = side;
  options.resize_size = shorter_side;
  return options;
}

}  // namespace

TEST_CASE("resident images make the loader's batches, byte for byte") {
  SECTION("padded, shifted and mirrored, also by more than the image") {
    for (const int64_t pad : {0, 1, 4, 15}) {
      for (const config::Switch flip : {config::Switch::kOn, config::Switch::kOff}) {
        check_pipeline(8, 8, pipeline("plain", pad, flip), ViewUse::kTraining);
        check_pipeline(7, 5, pipeline("plain", pad, flip), ViewUse::kTraining);
      }
    }
    check_pipeline(1, 1, pipeline("plain", 1, config::Switch::kOn), ViewUse::kTraining);
    check_pipeline(9, 9, pipeline("cifar", PipelineOptions::kAuto, config::Switch::kAuto), ViewUse::kTraining);
  }
  SECTION("in evaluation") {
    check_pipeline(9, 9, pipeline("cifar", PipelineOptions::kAuto, config::Switch::kAuto), ViewUse::kEvaluation);
    check_pipeline(7, 5, {}, ViewUse::kEvaluation);
  }
  SECTION("cut out of larger images, ten crops too") {
    for (const char* name : {"plantnet", "imagenet2018"}) {
      check_pipeline(9, 9, cut_out(name, 9, 6), ViewUse::kTraining);
      check_pipeline(8, 11, cut_out(name, 8, 5), ViewUse::kTraining);
      check_pipeline(11, 8, cut_out(name, 8, 5), ViewUse::kTenCrops);
      check_pipeline(9, 9, cut_out(name, 9, 6), ViewUse::kTenCrops);
    }
    check_pipeline(8, 11, cut_out("plantnet", 8, 5), ViewUse::kEvaluation);
    PipelineOptions covering;  // whose shorter side is the input's
    covering.input_size = 5;
    check_pipeline(5, 8, covering, ViewUse::kTraining);
    check_pipeline(8, 5, covering, ViewUse::kEvaluation);
  }
}

TEST_CASE("epochs that take an image again, several workers, resumed epochs and label sets") {
  Split split = test::random_split(6, 6, 3);
  split.labels.assign(split.ids.size(), 0);
  split.labels[4] = 1;  // alone in its class
  for (int64_t i = 0; i < split.size(); ++i)
    split.label_sets.add(std::vector<int64_t>(static_cast<size_t>(1 + i % 3), i));
  LoaderSettings settings{.batch_size = 5,
                          .workers = 3,
                          .prefetch = 4,
                          .shuffle_seed = 3,
                          .sampling = {Sampling::kClassBalanced, /*epochs=*/2}};
  const test::LoaderPair loaders(split, pipeline("cifar", 2, config::Switch::kOn), ViewUse::kTraining, true, at::kCPU,
                                 settings);
  test::check_equal(loaders, 2);
  test::check_equal(loaders, 2, /*first_batch=*/3);
}

TEST_CASE("resident images keep to what they can do") {
  const Split split = test::random_split(8, 8, 3);
  const auto images = test::resident(split, at::kCPU);
  CHECK(images->bytes() == static_cast<uint64_t>((1 + split.images->size() * 64) * 3));
  std::vector<int64_t> places(32);
  View view = whole_view(8, 8);
  CHECK_NOTHROW(images->locate(0, view, places.data()));
  CHECK_THROWS_AS(images->locate(-1, view, places.data()), std::out_of_range);
  CHECK_THROWS_AS(images->locate(split.images->size(), view, places.data()), std::out_of_range);
  view.height = 9;
  CHECK_THROWS_AS(images->locate(0, view, places.data()), std::invalid_argument);
  CHECK_THROWS_AS(images->locate(0, whole_view(7, 8), places.data()), std::invalid_argument);

  const auto loader = [&](const PipelineOptions& options, const Normalisation& normalisation, PixelType type) {
    const Transform transform(Pipeline(options, 8, 8, ViewUse::kTraining), normalisation, {type, false});
    Loader(split, transform, {.resident = images});
  };
  PipelineOptions larger;
  larger.input_size = 9;
  CHECK_NOTHROW(loader({}, test::statistics(3), PixelType::kByte));
  CHECK_THROWS_AS(loader({}, test::statistics(3), PixelType::kFloat), std::invalid_argument);
  CHECK_THROWS_AS(loader({}, test::statistics(1), PixelType::kByte), std::invalid_argument);
  CHECK_THROWS_AS(loader(larger, test::statistics(3), PixelType::kByte), std::invalid_argument);
  CHECK_THROWS_AS(loader(pipeline("imagenet", 0, config::Switch::kAuto), test::statistics(3), PixelType::kByte),
                  std::invalid_argument);
}
