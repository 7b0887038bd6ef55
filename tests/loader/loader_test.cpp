#include "src/loader/loader.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <set>
#include <stdexcept>

#include "datasets/dataset.h"
#include "datasets/validation_split.h"
#include "src/core/error.h"
#include "tests/support/catch2.h"

using namespace settrain;

namespace {

constexpr int64_t kImages = 23, kSide = 6;

// Colour images of random pixels; sample i has id 10 + i and label i % 4.
Split random_split() {
  const at::Tensor pixels =
      at::randint(0, 256, {(kImages + 10) * kSide * kSide * 3}, at::detail::createCPUGenerator(1), at::kByte);
  const auto* first = pixels.data_ptr<uint8_t>();
  Split split{"train",
              std::make_shared<MemoryImages>(std::vector<uint8_t>(first, first + pixels.numel()), kSide, kSide, 3),
              {},
              {}};
  for (int64_t i = 0; i < kImages; ++i) {
    split.ids.push_back(10 + i);
    split.labels.push_back(i % 4);
  }
  return split;
}

// Crops, flips, and changes pixels.
Transform augmenting() {
  PipelineOptions options;
  options.pad = 2;
  options.flip = config::Switch::kOn;
  options.augmentation.augment = "rand(2, 9)";
  options.augmentation.brightness = 0.4;
  options.augmentation.erase = 0.5;
  options.augmentation.cutout = 2;
  return Transform(Pipeline(options, kSide, kSide, ViewUse::kTraining, 9), {{0.5F, 0.4F, 0.3F}, {0.2F, 0.3F, 0.4F}});
}

Transform grey(int64_t height, int64_t width) {
  return Transform(Pipeline({}, height, width, ViewUse::kEvaluation), {{0}, {1}});
}

std::vector<Batch> epoch_of(Loader& loader, int64_t epoch, int64_t first_batch = 0) {
  loader.start_epoch(epoch, first_batch);
  std::vector<Batch> batches;
  for (Batch batch; loader.next(batch);) batches.push_back(batch);
  return batches;
}

void check_equal(const std::vector<Batch>& a, const std::vector<Batch>& b) {
  REQUIRE(a.size() == b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    CHECK(at::equal(a[i].images, b[i].images));
    CHECK(at::equal(a[i].labels, b[i].labels));
    CHECK(at::equal(a[i].sample_ids, b[i].sample_ids));
    CHECK(a[i].first_position == b[i].first_position);
  }
}

// Fails for one image.
class BrokenSource : public ImageSource {
 public:
  int64_t size() const override { return kImages; }
  void read(int64_t id, Image& image) const override {
    if (id == 13) throw DataError("'picture-13.jpg': the JPEG is cut short");
    image = {2, 2, 1, std::vector<uint8_t>(4, 0)};
  }
  std::string describe(int64_t id) const override { return "'picture-" + std::to_string(id) + ".jpg'"; }
};

Loader broken_loader(int64_t workers) {
  return Loader(make_split("val", std::make_shared<BrokenSource>(), std::vector<int64_t>(kImages, 0)), grey(2, 2),
                {.batch_size = 4, .workers = workers, .prefetch = 3});
}

}  // namespace

TEST_CASE("batches are the same for any number of workers and any prefetch") {
  Loader one_worker(random_split(), augmenting(), {.batch_size = 5, .workers = 1, .prefetch = 1, .shuffle_seed = 3});
  const std::vector<Batch> first = epoch_of(one_worker, 0), second = epoch_of(one_worker, 1);
  CHECK_FALSE(at::equal(first[0].sample_ids, second[0].sample_ids));
  for (const int64_t workers : {1, 2, 5}) {
    Loader many_workers(random_split(), augmenting(),
                        {.batch_size = 5, .workers = workers, .prefetch = workers + 1, .shuffle_seed = 3});
    check_equal(epoch_of(many_workers, 0), first);
    check_equal(epoch_of(many_workers, 1), second);
    check_equal(epoch_of(many_workers, 0), first);
  }
}

TEST_CASE("an epoch has every sample once, with its own label and pixels") {
  const Split split = random_split();
  const Transform transform = augmenting();
  Loader loader(split, transform, {.batch_size = 5, .workers = 2, .prefetch = 4, .shuffle_seed = 3});
  CHECK(loader.size() == kImages);
  CHECK(loader.batches_per_epoch() == 5);
  std::set<int64_t> seen;
  int64_t position = 0;
  for (const Batch& batch : epoch_of(loader, 6)) {
    CHECK(batch.images.sizes() == at::IntArrayRef({batch.size(), 3, kSide, kSide}));
    CHECK(batch.images.scalar_type() == at::kFloat);
    CHECK(batch.images.is_contiguous());
    CHECK(batch.first_position == position);
    position += batch.size();
    for (int64_t i = 0; i < batch.size(); ++i) {
      const auto id = batch.sample_ids[i].item<int64_t>();
      CHECK(seen.insert(id).second);
      CHECK(batch.labels[i].item<int64_t>() == (id - 10) % 4);
      at::Tensor expected = at::empty({3, kSide, kSide});
      TransformMemory memory;
      transform(*split.images, id, 6, memory, expected.data_ptr<float>());
      CHECK(at::equal(batch.images[i], expected));
    }
  }
  CHECK(position == kImages);
  CHECK(seen.size() == kImages);
}

TEST_CASE("an epoch resumed at a batch goes on as the undisturbed one") {
  Loader loader(random_split(), augmenting(), {.batch_size = 5, .workers = 2, .prefetch = 2, .shuffle_seed = 3});
  const std::vector<Batch> whole = epoch_of(loader, 2);
  check_equal(epoch_of(loader, 2, 3), {whole.begin() + 3, whole.end()});
  CHECK(epoch_of(loader, 2, 5).empty());
}

TEST_CASE("an epoch sampled by class is the same for any number of workers, and resumed at a batch") {
  for (const char* sampler : {Sampling::kClassBalanced, Sampling::kSquareRoot, Sampling::kProgressive}) {
    const auto settings = [&](int64_t workers) {
      return LoaderSettings{.batch_size = 5,
                            .workers = workers,
                            .prefetch = workers + 1,
                            .shuffle_seed = 3,
                            .sampling = {sampler, /*epochs=*/4, /*repeats=*/2}};
    };
    Loader alone(random_split(), augmenting(), settings(1)), together(random_split(), augmenting(), settings(5));
    const std::vector<Batch> whole = epoch_of(alone, 2);
    REQUIRE(whole.size() == 5);
    check_equal(epoch_of(together, 2), whole);
    check_equal(epoch_of(together, 2, 3), {whole.begin() + 3, whole.end()});
    CHECK_FALSE(at::equal(epoch_of(alone, 1)[0].sample_ids, whole[0].sample_ids));
  }
}

TEST_CASE("an image that an epoch takes again is augmented anew") {
  Split split = random_split();
  split.labels.assign(kImages, 0);
  split.labels[4] = 1;  // alone in its class
  const Transform transform = augmenting();
  Loader loader(split, transform,
                {.batch_size = kImages, .shuffle_seed = 3, .sampling = {Sampling::kClassBalanced, /*epochs=*/1}});
  const Batch batch = epoch_of(loader, 0)[0];
  int64_t repetition = 0, unlike_the_first = 0;
  at::Tensor first;
  for (int64_t i = 0; i < kImages; ++i) {
    if (batch.sample_ids[i].item<int64_t>() != 14) continue;
    at::Tensor expected = at::empty({3, kSide, kSide});
    TransformMemory memory;
    transform(*split.images, 14, 0, memory, expected.data_ptr<float>(), repetition);
    CHECK(at::equal(batch.images[i], expected));
    if (repetition++ == 0) first = expected;
    unlike_the_first += !at::equal(expected, first);
  }
  CHECK(repetition > 5);
  CHECK(unlike_the_first > repetition / 2);
}

TEST_CASE("an epoch can be given up") {
  Loader loader(random_split(), augmenting(), {.batch_size = 2, .workers = 3, .prefetch = 4, .shuffle_seed = 3});
  const std::vector<Batch> whole = epoch_of(loader, 1);
  Batch batch;
  for (int64_t epoch = 0; epoch < 20; ++epoch) {
    loader.start_epoch(epoch);
    REQUIRE(loader.next(batch));
  }
  check_equal(epoch_of(loader, 1), whole);
}

TEST_CASE("the last batch is smaller, or left out") {
  Loader all(random_split(), augmenting(), {.batch_size = 5, .workers = 1, .prefetch = 2});
  CHECK(epoch_of(all, 0).back().size() == 3);
  Loader whole(random_split(), augmenting(), {.batch_size = 5, .workers = 1, .prefetch = 2, .drop_last = true});
  CHECK(whole.batches_per_epoch() == 4);
  CHECK(epoch_of(whole, 0).size() == 4);
  CHECK(epoch_of(whole, 0).back().size() == 5);
  CHECK_THROWS_AS(Loader(random_split(), augmenting(), {.batch_size = 24, .drop_last = true}), ConfigError);
}

TEST_CASE("without a seed the order is the split's") {
  Loader loader(random_split(), augmenting(), {.batch_size = 23, .workers = 1, .prefetch = 1});
  CHECK(at::equal(epoch_of(loader, 4)[0].sample_ids, at::arange(10, 33)));
}

TEST_CASE("a broken image is named, in its batch's turn") {
  for (const int64_t workers : {1, 2, 5}) {
    Loader loader = broken_loader(workers);
    loader.start_epoch(0);
    Batch batch;
    for (int64_t i = 0; i < 3; ++i) REQUIRE(loader.next(batch));
    CHECK_THROWS_WITH(loader.next(batch), Catch::Contains("picture-13.jpg"));
    REQUIRE(loader.next(batch));
    CHECK(batch.first_position == 16);
  }
}

TEST_CASE("a broken image is left out and noted where that is asked for") {
  const auto skipped = std::make_shared<SkippedImages>();
  Loader loader(make_split("val", std::make_shared<BrokenSource>(), std::vector<int64_t>(kImages, 0)), grey(2, 2),
                {.batch_size = 4, .workers = 2, .prefetch = 3, .skipped = skipped});
  for (int64_t epoch = 0; epoch < 2; ++epoch) {
    const std::vector<Batch> batches = epoch_of(loader, epoch);
    REQUIRE(batches.size() == 6);
    CHECK(at::equal(batches[3].sample_ids, at::tensor({12, 14, 15}, at::kLong)));
    CHECK(batches[3].images.size(0) == 3);
    REQUIRE(batches[3].skipped.size() == 1);
    CHECK(batches[3].skipped[0].id == 13);
    CHECK(skipped->count() == 1);
  }
  Loader alone(make_split("val", std::make_shared<BrokenSource>(), {13}, std::vector<int64_t>(kImages, 0)), grey(2, 2),
               {.skipped = skipped});
  alone.start_epoch(0);
  Batch batch;
  REQUIRE(alone.next(batch));
  CHECK(batch.size() == 0);
  CHECK(batch.skipped.size() == 1);
  CHECK_FALSE(alone.next(batch));
}

TEST_CASE("every format holds the same numbers, to its precision") {
  const auto all = [](PixelFormat format) {
    const Transform plain = augmenting();
    Loader loader(random_split(), Transform(plain.pipeline(), {{0.5F, 0.4F, 0.3F}, {0.2F, 0.3F, 0.4F}}, format),
                  {.batch_size = 23, .workers = 1, .prefetch = 1});
    return epoch_of(loader, 0)[0].images;
  };
  const at::Tensor images = all({});
  const at::Tensor last = all({PixelType::kFloat, true});
  CHECK(at::equal(last, images));
  CHECK(last.is_contiguous(at::MemoryFormat::ChannelsLast));
  CHECK(at::equal(all({PixelType::kBFloat16, true}), images.to(at::kBFloat16)));
  const at::Tensor mean = at::tensor({0.5F, 0.4F, 0.3F}).view({1, 3, 1, 1});
  const at::Tensor std = at::tensor({0.2F, 0.3F, 0.4F}).view({1, 3, 1, 1});
  CHECK(at::equal(all({PixelType::kByte, false}).to(at::kFloat).div(255).sub(mean).div(std), images));
}

TEST_CASE("a loader must be started and have images") {
  Batch batch;
  Loader loader = broken_loader(1);
  CHECK_THROWS_AS(loader.next(batch), std::logic_error);
  CHECK_THROWS_AS(Loader(Split{"val", nullptr, {}, {}}, grey(2, 2), {}), DataError);
  // A split that a data set has none of has its name all the same, and the key that would fill it is said.
  const Dataset none;
  CHECK_THROWS_WITH(Loader(none.calibration, grey(2, 2), {}),
                    Catch::Contains("calibration") && Catch::Contains("data.calibration_share"));
  CHECK_THROWS_WITH(Loader(none.val, grey(2, 2), {}), Catch::Contains("'val'") && Catch::Contains("data.val_size"));
  CHECK_THROWS_WITH(Loader(none.test, grey(2, 2), {}), Catch::Contains("'test'"));
}

TEST_CASE("pinned memory is asked for in vain where there is no CUDA") {
  Loader loader(random_split(), augmenting(), {.batch_size = 5, .workers = 1, .prefetch = 1, .pin_memory = true});
  CHECK(loader.settings().pin_memory == at::hasCUDA());
  CHECK(epoch_of(loader, 0)[0].images.is_pinned() == at::hasCUDA());
}

TEST_CASE("the training loader augments and shuffles, the evaluation loader does neither") {
  Dataset dataset;
  dataset.name = "random";
  dataset.channels = 3;
  dataset.train = dataset.val = random_split();
  dataset.height = dataset.width = kSide;
  LoaderContext context;
  context.options.batch_size = 8;
  context.options.eval_batch_size = 23;
  context.options.workers = 2;
  context.options.prefetch = 3;
  context.normalisation = {{0.5F, 0.4F, 0.3F}, {0.2F, 0.3F, 0.4F}};
  context.pipeline.pad = 2;
  context.options.sampler = Sampling::kUniform;
  Loader training = training_loader(dataset, context, 5);
  CHECK(training.batches_per_epoch() == 3);
  const Batch first = epoch_of(training, 0)[0];
  Loader evaluation = evaluation_loader(dataset, dataset.val, context);
  CHECK(evaluation.batches_per_epoch() == 1);
  const Batch all = epoch_of(evaluation, 0)[0];
  CHECK(at::equal(all.sample_ids, at::arange(10, 33)));
  CHECK_FALSE(at::equal(first.sample_ids, at::arange(10, 18)));
  check_equal(epoch_of(evaluation, 1), {all});
  int64_t unmoved = 0;
  for (int64_t i = 0; i < 8; ++i)
    unmoved += at::equal(first.images[i], all.images[first.sample_ids[i].item<int64_t>() - 10]);
  CHECK(unmoved < 8);
  context.options.sampler = Sampling::kProgressive;
  context.epochs = 7;
  const Sampling sampling = training_loader(dataset, context, 5).settings().sampling;
  CHECK((sampling.sampler == Sampling::kProgressive && sampling.epochs == 7));
}

TEST_CASE("label sets come with their samples") {
  Split split = random_split();
  for (int64_t i = 0; i < kImages; ++i) {
    // i % 4 alone, or with others behind it.
    std::vector<int64_t> labels{i % 4};
    for (int64_t extra = 0; extra < i % 3; ++extra) labels.push_back(10 + i + extra);
    split.label_sets.add(labels);
  }
  Loader loader(split, augmenting(), {.batch_size = 5, .workers = 2, .prefetch = 2, .shuffle_seed = 1});
  int64_t seen = 0;
  for (const Batch& batch : epoch_of(loader, 0)) {
    REQUIRE(batch.set_offsets.size(0) == batch.size() + 1);
    for (int64_t i = 0; i < batch.size(); ++i, ++seen) {
      const int64_t number = batch.sample_ids[i].item<int64_t>() - 10;
      const at::Tensor set =
          batch.set_classes.slice(0, batch.set_offsets[i].item<int64_t>(), batch.set_offsets[i + 1].item<int64_t>());
      REQUIRE(set.size(0) == 1 + number % 3);
      CHECK(set[0].item<int64_t>() == batch.labels[i].item<int64_t>());
      if (number % 3 > 0) CHECK(set[1].item<int64_t>() == 10 + number);
    }
  }
  CHECK(seen == kImages);
  Loader without(random_split(), augmenting(), {.batch_size = 5});
  CHECK_FALSE(epoch_of(without, 0)[0].set_offsets.defined());
}

TEST_CASE("features come as rows of floats, the same for any number of workers") {
  std::vector<float> values(static_cast<size_t>(kImages * 5));
  for (size_t i = 0; i < values.size(); ++i) values[i] = 0.5F * static_cast<float>(i);
  Split split = random_split();
  for (int64_t i = 0; i < kImages; ++i) split.ids[static_cast<size_t>(i)] = i;
  const auto table = std::make_shared<const FeatureTable>(values, 5);
  const auto epoch = [&](int64_t workers) {
    Loader loader(split, grey(1, 5),
                  {.batch_size = 4, .workers = workers, .prefetch = 2, .shuffle_seed = 3, .features = table});
    return epoch_of(loader, 1);
  };
  const std::vector<Batch> one = epoch(1);
  check_equal(one, epoch(3));
  REQUIRE(one.size() == 6);
  CHECK(one[5].images.sizes() == at::IntArrayRef{3, 5});
  const at::Tensor all = at::from_blob(values.data(), {kImages, 5}, at::kFloat);
  for (const Batch& batch : one) CHECK(at::equal(batch.images, all.index_select(0, batch.sample_ids)));
}
