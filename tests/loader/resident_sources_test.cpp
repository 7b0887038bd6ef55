#include "src/core/error.h"
#include "src/loader/loader.h"
#include "src/loader/resident_images.h"
#include "tests/loader/resident_loaders.h"
#include "tests/support/catch2.h"
#include "tests/support/logged.h"

using namespace settrain;

namespace {

// Training and validation share a source, the test split has its own.
Dataset some_data(int64_t height, int64_t width) {
  Dataset dataset;
  dataset.name = "random";
  dataset.train = dataset.val = test::random_split(height, width, 3);
  dataset.test = test::random_split(height, width, 3);
  dataset.height = height;
  dataset.width = width;
  dataset.channels = 3;
  return dataset;
}

class MadeImages : public ImageSource {
 public:
  int64_t size() const override { return 33; }
  void read(int64_t, Image& image) const override { image = {8, 8, 3, std::vector<uint8_t>(192)}; }
};

bool stay(config::Switch wanted, at::Device device, const Dataset& dataset, const PipelineOptions& pipeline = {},
          ViewUse use = ViewUse::kEvaluation) {
  LoaderOptions options;
  options.on_device = wanted;
  return images_stay_on(device, dataset, options, pipeline, {ViewUse::kTraining, ViewUse::kEvaluation, use});
}

// Images that cannot stay: auto leaves them, and on says why.
void check_refused(const std::string& why, const Dataset& dataset, const PipelineOptions& pipeline = {}) {
  for (const at::Device device : {at::Device(at::kCPU), at::Device(at::kCUDA)}) {
    CHECK_FALSE(stay(config::Switch::kAuto, device, dataset, pipeline));
    CHECK_FALSE(stay(config::Switch::kOff, device, dataset, pipeline));
    CHECK_THROWS_AS(stay(config::Switch::kOn, device, dataset, pipeline), KeyError);
    CHECK_THROWS_WITH(stay(config::Switch::kOn, device, dataset, pipeline),
                      Catch::StartsWith("data.on_device") && Catch::Contains(why) && Catch::Contains("auto or off"));
  }
}

}  // namespace

TEST_CASE("images that lie in memory stay on a GPU, and where that is asked for") {
  const Dataset dataset = some_data(8, 8);
  CHECK(stay(config::Switch::kAuto, at::kCUDA, dataset));
  CHECK_FALSE(stay(config::Switch::kAuto, at::kCPU, dataset));
  CHECK(stay(config::Switch::kOn, at::kCPU, dataset));
  CHECK(stay(config::Switch::kOn, at::kCUDA, dataset));
  CHECK_FALSE(stay(config::Switch::kOff, at::kCUDA, dataset));
  PipelineOptions cut_out;
  cut_out.pipeline = "plantnet";
  cut_out.input_size = 5;
  cut_out.resize_size = 8;
  CHECK(stay(config::Switch::kAuto, at::kCUDA, dataset, cut_out, ViewUse::kTenCrops));
  Dataset without_test = dataset;
  without_test.test = {};
  CHECK(stay(config::Switch::kAuto, at::kCUDA, without_test));
}

TEST_CASE("on is refused where images cannot stay") {
  Dataset made = some_data(8, 8);
  made.test.images = std::make_shared<MadeImages>();
  check_refused("do not lie in memory", made);
  Dataset sizes = some_data(8, 8);
  sizes.test = test::random_split(8, 7, 3);
  check_refused("several sizes", sizes);
  sizes.height = sizes.width = 0;
  check_refused("several sizes", sizes);
  PipelineOptions options;
  options.input_size = 9;
  check_refused("in training the pipeline plain resizes images of 8x8 pixels", some_data(8, 8), options);
  options.pipeline = "imagenet";
  options.input_size = options.resize_size = 8;
  check_refused("in training the pipeline imagenet resizes", some_data(8, 8), options);
  options.pipeline = "imagenet2018";
  options.input_size = 7;
  options.resize_size = PipelineOptions::kAuto;
  check_refused("in evaluation the pipeline imagenet2018 resizes", some_data(8, 8), options);
}

TEST_CASE("images whose pixels are augmented leave a GPU, and the log says so") {
  PipelineOptions options;
  options.augmentation.augment = "trivial";
  const std::string why = "the augmentation changes pixels, which is done on the CPU";
  check_refused(why, some_data(8, 8), options);
  const auto log_of = [&](at::Device device) {
    return test::logged([&] { stay(config::Switch::kAuto, device, some_data(8, 8), options); });
  };
  CHECK_THAT(log_of(at::kCUDA), Catch::Contains("[data] the images do not stay on cuda, as they would: " + why));
  CHECK(log_of(at::kCPU).empty());
}

TEST_CASE("a source is copied to the device once, for all loaders") {
  const Dataset dataset = some_data(8, 8);
  LoaderContext context;
  context.options.batch_size = 23;
  context.options.workers = context.options.prefetch = 1;
  context.options.sampler = Sampling::kUniform;
  context.normalisation = test::statistics(3);
  context.format.type = PixelType::kByte;
  const auto resident = std::make_shared<ResidentSources>(dataset, at::kCPU);
  context.resident = resident;
  CHECK(resident->bytes() == 2 * test::resident(dataset.train, at::kCPU)->bytes());
  CHECK(training_loader(dataset, context, 1).settings().resident == resident->of(dataset.train.images));
  for (int64_t i = 0; i < 2; ++i) {
    for (const Split* split : {&dataset.val, &dataset.test})
      CHECK(evaluation_loader(dataset, *split, context).settings().resident == resident->of(split->images));
  }
  CHECK(resident->of(dataset.val.images) == resident->of(dataset.train.images));
  CHECK(resident->of(dataset.test.images) != resident->of(dataset.train.images));

  // Others, such as a folder that sets thresholds, come from worker threads.
  const Split elsewhere = test::random_split(8, 8, 3);
  Loader loader = evaluation_loader(dataset, elsewhere, context);
  CHECK(loader.settings().resident == nullptr);
  loader.start_epoch(0);
  Batch batch;
  REQUIRE(loader.next(batch));
  CHECK(batch.images.size(0) == 23);
}
