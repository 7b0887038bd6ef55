#include "src/loader/loader.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <utility>
#include <vector>

#include "datasets/image_files.h"
#include "src/core/error.h"
#include "src/core/log.h"

namespace settrain {
namespace {

at::ScalarType scalar_type(PixelType type) {
  return type == PixelType::kFloat ? at::kFloat : type == PixelType::kBFloat16 ? at::kBFloat16 : at::kByte;
}

at::Tensor to_tensor(const std::vector<int64_t>& numbers, const at::TensorOptions& options) {
  at::Tensor tensor = at::empty({static_cast<int64_t>(numbers.size())}, options.dtype(at::kLong));
  std::copy(numbers.begin(), numbers.end(), tensor.mutable_data_ptr<int64_t>());
  return tensor;
}

// The rows of the table with these numbers, [rows, width] float32. All compute threads copy, since a batch is used at
// once.
at::Tensor gather_rows(const FeatureTable& table, const at::Tensor& numbers, const at::TensorOptions& options) {
  constexpr int64_t kGrain = 16;  // rows for each task, some 80 KB
  const int64_t width = table.width();
  at::Tensor rows = at::empty({numbers.size(0), width}, options.dtype(at::kFloat));
  auto* const values = rows.mutable_data_ptr<float>();
  const auto* const number = numbers.const_data_ptr<int64_t>();
  at::parallel_for(0, numbers.size(0), kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) table.read(number[i], values + i * width);
  });
  return rows;
}

// Pinned memory means training on a GPU, where only the thread that feeds it is busy.
int64_t busy_threads(bool pin_memory) {
  return pin_memory ? 1 : at::get_num_threads();
}

}  // namespace

void SkippedImages::add(const std::string& image, const std::string& reason) {
  {
    const std::lock_guard lock(mutex_);
    if (!images_.insert(image).second) return;
    if (!logs_) unreported_.emplace(image, reason);
  }
  if (logs_) log::warning("[data] left out: " + reason);
}

std::map<std::string, std::string> SkippedImages::take_unreported() {
  const std::lock_guard lock(mutex_);
  return std::exchange(unreported_, {});
}

int64_t SkippedImages::count() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(images_.size());
}

bool SkippedImages::contains(const std::string& image) const {
  const std::lock_guard lock(mutex_);
  return images_.contains(image);
}

void SkippedImages::add_batches_of_one(int64_t batches) {
  if (batches == 0) return;
  bool is_first = false;
  {
    const std::lock_guard lock(mutex_);
    is_first = batches_of_one_ == 0;
    batches_of_one_ += batches;
    if (!logs_) unreported_batches_ += batches;
  }
  if (logs_ && is_first) {
    log::warning(
        "[data] left out: a training batch of which a single image could be read, since batch norm cannot be trained "
        "on one value a channel; later ones are only counted");
  }
}

int64_t SkippedImages::take_unreported_batches() {
  const std::lock_guard lock(mutex_);
  return std::exchange(unreported_batches_, 0);
}

int64_t SkippedImages::batches_of_one() const {
  const std::lock_guard lock(mutex_);
  return batches_of_one_;
}

at::Tensor empty_views(int64_t views, const Transform& transform, const at::TensorOptions& options) {
  const auto [type, channels_last] = transform.format();
  const auto layout = channels_last ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
  return at::empty({views, transform.channels(), transform.pipeline().height(), transform.pipeline().width()},
                   options.dtype(scalar_type(type)), layout);
}

Loader::Loader(Split split, Transform transform, const LoaderSettings& settings)
    : split_(std::move(split)), transform_(std::move(transform)), settings_(settings) {
  settings_.pin_memory = settings.pin_memory && at::hasCUDA();
  if (split_.size() == 0)
    throw DataError(fmt::format("the split '{}' has no images{}", split_.name, why_empty(split_)));
  if (batches_per_epoch() == 0) {
    throw KeyError("data.drop_last",
                   fmt::format("true leaves no batch, since the split '{}' has {} images and data.batch_size is {}",
                               split_.name, split_.size(), settings_.batch_size));
  }
  if (!settings_.resident) return;
  const ResidentImages& images = *settings_.resident;
  if (transform_.format().type != PixelType::kByte || transform_.channels() != images.channels() ||
      transform_.pipeline().resizes(images.height(), images.width()) || transform_.pipeline().augmentation().is_on())
    throw std::invalid_argument(
        "Loader: resident images come as bytes, with their own channels, and are neither resized nor augmented");
}

int64_t Loader::batches_per_epoch() const {
  const int64_t rest = settings_.drop_last ? 0 : settings_.batch_size - 1;
  return (size() + rest) / settings_.batch_size;
}

void Loader::start_epoch(int64_t epoch, int64_t first_batch) {
  prefetch_.reset();  // stops its threads before the next one starts new ones
  auto make = [this, epoch, order = epoch_order(split_.labels, settings_.shuffle_seed, epoch, settings_.sampling)](
                  int64_t own) { return prepare(order, epoch, own * settings_.world + settings_.rank); };
  // The number of this process' batches before that one.
  const auto own_before = [this](int64_t number) {
    return (number - settings_.rank + settings_.world - 1) / settings_.world;
  };
  prefetch_ = std::make_unique<OrderedPrefetch<Prepared>>(own_before(first_batch), own_before(batches_per_epoch()),
                                                          settings_.workers, settings_.prefetch, std::move(make));
}

bool Loader::next(Batch& batch) {
  if (!prefetch_) throw std::logic_error("Loader: next() before start_epoch()");
  std::optional<Prepared> made = prefetch_->next();
  if (!made) return false;
  batch = std::move(made->batch);
  if (settings_.resident) {
    batch.images = settings_.resident->render(made->places, transform_.pipeline().height(),
                                              transform_.pipeline().width(), transform_.format().channels_last);
  }
  if (settings_.features) {
    batch.images =
        gather_rows(*settings_.features, made->places, at::TensorOptions().pinned_memory(settings_.pin_memory));
  }
  for (const SkippedImage& image : batch.skipped)
    settings_.skipped->add(split_.images->describe(image.id), image.reason);
  return true;
}

// Runs in a worker thread, in plain loops: ATen's operators would start compute threads here too.
Loader::Prepared Loader::prepare(const std::vector<Draw>& order, int64_t epoch, int64_t number) const {
  Prepared prepared;
  Batch& batch = prepared.batch;
  batch.first_position = number * settings_.batch_size;
  batch.views = transform_.pipeline().views();
  const int64_t count = std::min(settings_.batch_size, size() - batch.first_position);
  const auto pinned = at::TensorOptions().pinned_memory(settings_.pin_memory);
  const int64_t places = transform_.pipeline().height() + transform_.pipeline().width();  // of a view
  if (settings_.features) {
    prepared.places = at::empty({count}, at::kLong);
  } else if (settings_.resident) {
    prepared.places = at::empty({count * batch.views, places}, pinned.dtype(at::kLong));
  } else {
    batch.images = empty_views(count * batch.views, transform_, pinned);
  }
  std::vector<int64_t> labels, ids;
  LabelLists sets;
  TransformMemory memory;
  for (int64_t i = 0; i < count; ++i) {
    const Draw& draw = order[static_cast<size_t>(batch.first_position + i)];
    const auto position = static_cast<size_t>(draw.position);
    const int64_t id = split_.ids[position];
    try {
      if (settings_.features) {
        prepared.places.mutable_data_ptr<int64_t>()[i] = settings_.features_by_position ? draw.position : id;
      } else if (settings_.resident) {
        locate(draw, epoch, prepared.places.mutable_data_ptr<int64_t>() + i * batch.views * places);
      } else {
        auto* slot = static_cast<std::byte*>(batch.images.mutable_data_ptr()) + std::ssize(ids) * transform_.bytes();
        transform_(*split_.images, id, epoch, memory, slot, draw.repetition);
      }
    } catch (const DataError& error) {
      if (!settings_.skipped) {
        // With other training images a run is another one, and does not go on.
        const char* start = split_.name == "train" ? " and start the run again" : "";
        throw DataError(
            fmt::format("{}. Replace or remove the file{}, or {}; `settrain data verify` lists all such files",
                        error.what(), start, kSkipAdvice));
      }
      batch.skipped.push_back({id, error.what()});
      continue;
    }
    labels.push_back(split_.labels[position]);
    ids.push_back(id);
    if (!split_.label_sets.empty()) sets.add(split_.label_sets.of(static_cast<int64_t>(position)));
  }
  if (batch.images.defined()) batch.images = batch.images.narrow(0, 0, std::ssize(ids) * batch.views);
  batch.labels = to_tensor(labels, pinned);
  batch.sample_ids = to_tensor(ids, pinned);
  if (!sets.empty()) {
    batch.set_offsets = to_tensor(sets.offsets, pinned);
    batch.set_classes = to_tensor(sets.classes, pinned);
  }
  return prepared;
}

// Writes the places of the pixels of an image's views.
void Loader::locate(const Draw& draw, int64_t epoch, int64_t* places) const {
  const ResidentImages& images = *settings_.resident;
  const int64_t id = split_.ids[static_cast<size_t>(draw.position)];
  const Pipeline& pipeline = transform_.pipeline();
  for (const View& view : pipeline.views_of(images.height(), images.width(), epoch, id, draw.repetition)) {
    images.locate(id, view, places);
    places += view.crop.height + view.crop.width;
  }
}

namespace {

LoaderSettings settings_for(const Split& split, const LoaderContext& context) {
  const LoaderOptions& options = context.options;
  return {.workers = options.resolved_workers(busy_threads(context.pin_memory)),
          .prefetch = options.prefetch,
          .rank = context.rank,
          .world = context.world,
          .skipped = options.on_bad_image == "skip" ? context.skipped : nullptr,
          .pin_memory = context.pin_memory,
          .resident = context.resident ? context.resident->of(split.images) : nullptr,
          .features = split.images ? split.images->features() : nullptr};
}

// Takes rows in place of the split's images, where the context has some.
void take_features(const Split& split, const LoaderContext& context, LoaderSettings& settings) {
  const auto cached = context.features.find(split.name);
  if (cached == context.features.end()) return;
  settings.features = cached->second;
  settings.features_by_position = true;
  settings.resident = nullptr;
}

// Whether it is a split of the data set that is evaluated, as a whole: other images may come under its name, such as
// those of a folder "test", and a part of a split has other positions. Rows of the training split are of batches of
// another size.
bool is_evaluated_split(const Dataset& dataset, const Split& split) {
  for (const Split* const own : {&dataset.val, &dataset.calibration, &dataset.test}) {
    if (own->name == split.name) return own->images == split.images && own->ids == split.ids;
  }
  return false;
}

// Training images, shuffled or not.
Loader loader_of_training(const Dataset& dataset, const LoaderContext& context, LoaderSettings settings,
                          uint64_t seed) {
  settings.batch_size = context.options.batch_size;
  const Pipeline pipeline(context.pipeline, dataset.height, dataset.width, ViewUse::kTraining, seed);
  return Loader(dataset.train, Transform(pipeline, context.normalisation, context.format), settings);
}

}  // namespace

Transform evaluation_transform(const LoaderContext& context, int64_t height, int64_t width, ViewUse use) {
  return Transform(Pipeline(context.pipeline, height, width, use), context.normalisation, context.format);
}

Loader training_loader(const Dataset& dataset, const LoaderContext& context, uint64_t seed) {
  LoaderSettings settings = settings_for(dataset.train, context);
  take_features(dataset.train, context, settings);
  settings.shuffle_seed = seed;
  settings.sampling = context.sampling();
  settings.drop_last = context.options.drop_last;
  return loader_of_training(dataset, context, settings, seed);
}

Loader training_loader_in_order(const Dataset& dataset, const LoaderContext& context) {
  return loader_of_training(dataset, context, settings_for(dataset.train, context), /*seed=*/0);
}

Loader evaluation_loader(const Dataset& dataset, const Split& split, const LoaderContext& context, ViewUse use) {
  LoaderSettings settings = settings_for(split, context);
  const bool has_rows = !context.features.empty() && use == ViewUse::kEvaluation;
  if (has_rows && is_evaluated_split(dataset, split)) take_features(split, context, settings);
  settings.batch_size = context.options.resolved_eval_batch_size();
  return Loader(split, evaluation_transform(context, dataset.height, dataset.width, use), settings);
}

}  // namespace settrain
