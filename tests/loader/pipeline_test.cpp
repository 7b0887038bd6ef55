#include "src/loader/pipeline.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "src/core/error.h"
#include "tests/support/catch2.h"

using namespace settrain;
using Catch::Contains;

namespace {

PipelineOptions named(const std::string& name) {
  PipelineOptions options;
  options.pipeline = name;
  return options;
}

View evaluation_view(const PipelineOptions& options, int64_t height, int64_t width) {
  return Pipeline(options, 0, 0, ViewUse::kEvaluation).views_of(height, width, 0, 0).at(0);
}

// The training views of many samples, all images of 400x300.
std::vector<View> training_views(const PipelineOptions& options) {
  const Pipeline pipeline(options, 0, 0, ViewUse::kTraining, 5);
  std::vector<View> views;
  for (int64_t id = 0; id < 400; ++id) views.push_back(pipeline.views_of(400, 300, 2, id).at(0));
  return views;
}

int64_t flipped(const std::vector<View>& views) {
  return std::count_if(views.begin(), views.end(), [](const View& view) { return view.flip; });
}

}  // namespace

TEST_CASE("plain leaves images of one size alone, and brings others to 224") {
  const Pipeline fixed({}, 32, 48, ViewUse::kTraining);
  CHECK((fixed.height() == 32 && fixed.width() == 48 && fixed.views() == 1));
  CHECK((fixed.views_of(32, 48, 3, 4) == std::vector<View>{whole_view(32, 48)}));
  const Pipeline any({}, 0, 0, ViewUse::kTraining);
  CHECK((any.height() == 224 && any.width() == 224));
  CHECK((any.views_of(448, 500, 0, 0).at(0) == center_crop(covering(448, 500, 224, 224), 224, 224)));
}

TEST_CASE("cifar moves by up to 4 pixels and mirrors") {
  const Pipeline pipeline(named("cifar"), 32, 32, ViewUse::kTraining, 1);
  std::set<std::pair<int64_t, int64_t>> places;
  int64_t mirrored = 0;
  for (int64_t id = 0; id < 3000; ++id) {
    const View view = pipeline.views_of(32, 32, 0, id).at(0);
    places.emplace(view.crop.top, view.crop.left);
    mirrored += view.flip;
  }
  CHECK(places.size() == 81);
  CHECK((places.begin()->first == -4 && places.rbegin()->first == 4));
  CHECK(std::abs(mirrored - 1500) < 140);  // 5 standard deviations
  CHECK(Pipeline(named("cifar"), 32, 32, ViewUse::kEvaluation).views_of(32, 32, 0, 7).at(0) == whole_view(32, 32));
}

TEST_CASE("plantnet and imagenet2018 scale to 256 and cut 224 at random") {
  for (const bool mirrors : {false, true}) {
    const auto views = training_views(named(mirrors ? "imagenet2018" : "plantnet"));
    std::set<int64_t> tops, lefts;
    for (const View& view : views) {
      CHECK((view.width == 256 && view.height == 341));  // 341.3
      CHECK((view.crop.height == 224 && view.crop.width == 224));
      CHECK((view.crop.top >= 0 && view.crop.top <= 117 && view.crop.left >= 0 && view.crop.left <= 32));
      tops.insert(view.crop.top);
      lefts.insert(view.crop.left);
    }
    CHECK(lefts.size() == 33);
    CHECK(tops.size() > 100);
    CHECK((mirrors ? std::abs(flipped(views) - 200) < 50 : flipped(views) == 0));
  }
}

TEST_CASE("evaluation scales and cuts in the centre") {
  for (const char* name : {"plantnet", "imagenet"}) {
    CHECK(evaluation_view(named(name), 400, 300) == center_crop(with_short_side(400, 300, 256), 224, 224));
  }
  CHECK(evaluation_view(named("imagenet2018"), 400, 300) == center_crop(with_short_side(400, 300, 224), 224, 224));
  PipelineOptions small = named("imagenet");
  small.input_size = 64;
  CHECK(evaluation_view(small, 400, 300) == center_crop(with_short_side(400, 300, 73), 64, 64));
  small.resize_size = 64;
  CHECK(evaluation_view(small, 400, 300) == center_crop(with_short_side(400, 300, 64), 64, 64));
}

TEST_CASE("the weights' share of the image is cut out in evaluation alone, unless the config says another") {
  PipelineOptions options = named("imagenet");
  options.crop_share = 224.0 / 236;  // a quotient that is rounded
  CHECK(evaluation_view(options, 400, 300) == center_crop(with_short_side(400, 300, 236), 224, 224));
  options.crop_share = 0.9;  // 248.9
  CHECK(evaluation_view(options, 400, 300) == center_crop(with_short_side(400, 300, 248), 224, 224));
  options.crop_share = 1;
  CHECK(evaluation_view(options, 400, 300) == center_crop(with_short_side(400, 300, 224), 224, 224));
  CHECK(Pipeline(options, 0, 0, ViewUse::kTenCrops).views_of(400, 300, 0, 0).at(0).width == 256);
  options.pipeline = "plantnet";
  CHECK(training_views(options).front().width == 256);
  options.pipeline = "imagenet2018";
  options.crop_share = 0.5;
  CHECK(evaluation_view(options, 400, 300) == center_crop(with_short_side(400, 300, 224), 224, 224));
  options.resize_size = 300;
  CHECK(evaluation_view(options, 400, 300) == center_crop(with_short_side(400, 300, 300), 224, 224));
}

TEST_CASE("every view of a pipeline has its interpolation") {
  for (const auto& [name, filter] :
       {std::pair{"auto", Filter::kBilinear}, {"bilinear", Filter::kBilinear}, {"bicubic", Filter::kBicubic}}) {
    PipelineOptions options = named("imagenet");
    options.interpolation = name;
    for (const ViewUse use : {ViewUse::kTraining, ViewUse::kEvaluation, ViewUse::kTenCrops}) {
      for (const View& view : Pipeline(options, 0, 0, use).views_of(400, 300, 0, 0)) CHECK(view.filter == filter);
    }
  }
}

TEST_CASE("ten crops: corners, centre, and all mirrored") {
  const Pipeline pipeline(named("imagenet2018"), 0, 0, ViewUse::kTenCrops);
  CHECK(pipeline.views() == 10);
  const auto views = pipeline.views_of(400, 300, 0, 0);
  REQUIRE(views.size() == 10);
  CHECK(views[3].crop == Box{117, 32, 224, 224});
  CHECK(views[4].crop == Box{58, 16, 224, 224});  // 58.5
  for (size_t i = 0; i < 5; ++i) {
    CHECK(views[i].width == 256);
    View mirrored = views[i];
    mirrored.flip = true;
    CHECK(views[i + 5] == mirrored);
  }
}

TEST_CASE("keys take the place of what a pipeline says") {
  PipelineOptions plants = named("plantnet");
  plants.flip = config::Switch::kOn;
  CHECK(flipped(training_views(plants)) > 100);
  PipelineOptions cifar = named("cifar");
  cifar.pad = 0;
  cifar.flip = config::Switch::kOff;
  CHECK(Pipeline(cifar, 32, 32, ViewUse::kTraining).views_of(32, 32, 0, 1).at(0) == whole_view(32, 32));
}

TEST_CASE("options that do not fit each other are refused") {
  const auto made = [](const PipelineOptions& options, ViewUse use = ViewUse::kTraining) {
    return Pipeline(options, 0, 0, use);
  };
  PipelineOptions options = named("imagenet");
  options.pad = 4;
  CHECK_THROWS_WITH(made(options), Contains("data.augmentation.pad"));
  options = named("plantnet");
  options.resize_size = 200;
  CHECK_THROWS_WITH(made(options), Contains("data.resize_size") && Contains("200 is less than"));
  options = named("cifar");
  options.resize_size = 40;
  CHECK_THROWS_AS(made(options), ConfigError);
  CHECK_THROWS_WITH(made(named("cifar"), ViewUse::kTenCrops), Contains("eval.crops"));
}

TEST_CASE("a pipeline knows for which images it resizes nothing") {
  const auto resizes = [](const char* name, int64_t input, int64_t height, int64_t width, ViewUse use) {
    PipelineOptions options = named(name);
    options.input_size = input;
    return Pipeline(options, 0, 0, use).resizes(height, width);
  };
  CHECK_FALSE(resizes("cifar", 28, 28, 28, ViewUse::kTraining));
  CHECK_FALSE(resizes("plain", 28, 28, 40, ViewUse::kEvaluation));
  CHECK(resizes("plain", 28, 32, 40, ViewUse::kEvaluation));
  CHECK(resizes("cifar", 28, 27, 28, ViewUse::kTraining));
  // The shorter side comes to 8/7 of the input, but for the single crop of imagenet2018.
  for (const ViewUse use : {ViewUse::kTraining, ViewUse::kEvaluation, ViewUse::kTenCrops}) {
    CHECK_FALSE(resizes("plantnet", 28, 32, 40, use));
    CHECK(resizes("plantnet", 28, 28, 40, use));
    CHECK(resizes("imagenet2018", 28, 32, 40, use) == (use == ViewUse::kEvaluation));
    CHECK(resizes("imagenet", 28, 32, 40, use) == (use == ViewUse::kTraining));
  }
}
