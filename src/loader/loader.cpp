#include "src/loader/loader.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "src/core/error.h"
#include "src/loader/normalisation.h"
#include "src/loader/sampler.h"

namespace settrain {
namespace {

std::span<float> slot(const at::Tensor& images, int64_t i) {
  const int64_t per_image = images.stride(0);
  return {images.mutable_data_ptr<float>() + i * per_image, static_cast<size_t>(per_image)};
}

at::Tensor to_tensor(const std::vector<int64_t>& numbers, const at::TensorOptions& options) {
  at::Tensor tensor = at::empty({static_cast<int64_t>(numbers.size())}, options.dtype(at::kLong));
  std::copy(numbers.begin(), numbers.end(), tensor.mutable_data_ptr<int64_t>());
  return tensor;
}

// Pinned memory is for a GPU, which leaves the compute threads idle but for the one that feeds it.
int64_t busy_threads(bool pin_memory) {
  return pin_memory ? 1 : at::get_num_threads();
}

}  // namespace

Loader::Loader(Split split, Transform transform, const LoaderSettings& settings)
    : split_(std::move(split)), transform_(std::move(transform)), settings_(settings) {
  settings_.pin_memory = settings.pin_memory && at::hasCUDA();
  if (split_.size() == 0) throw DataError(fmt::format("the split '{}' has no images", split_.name));
  if (batches_per_epoch() == 0) {
    throw KeyError("data.drop_last",
                   fmt::format("true leaves no batch, since the split '{}' has {} images and data.batch_size is {}",
                               split_.name, split_.size(), settings_.batch_size));
  }
}

int64_t Loader::batches_per_epoch() const {
  const int64_t rest = settings_.drop_last ? 0 : settings_.batch_size - 1;
  return (size() + rest) / settings_.batch_size;
}

void Loader::start_epoch(int64_t epoch, int64_t first_batch) {
  prefetch_.reset();  // before the next one starts threads of its own
  auto make = [this, epoch, order = epoch_order(size(), settings_.shuffle_seed, epoch)](int64_t number) {
    return make_batch(order, epoch, number);
  };
  prefetch_ = std::make_unique<OrderedPrefetch<Batch>>(first_batch, batches_per_epoch(), settings_.workers,
                                                       settings_.prefetch, std::move(make));
}

bool Loader::next(Batch& batch) {
  if (!prefetch_) throw std::logic_error("Loader: next() before start_epoch()");
  std::optional<Batch> made = prefetch_->next();
  if (!made) return false;
  batch = std::move(*made);
  return true;
}

// Runs in a worker thread: plain loops over memory, since ATen's operators would start compute threads here too.
Batch Loader::make_batch(const std::vector<int64_t>& order, int64_t epoch, int64_t number) const {
  Batch batch;
  batch.first_position = number * settings_.batch_size;
  const int64_t count = std::min(settings_.batch_size, size() - batch.first_position);
  const auto pinned = at::TensorOptions().pinned_memory(settings_.pin_memory);
  batch.labels = at::empty({count}, pinned.dtype(at::kLong));
  batch.sample_ids = at::empty({count}, pinned.dtype(at::kLong));
  LabelLists sets;
  Image image;
  for (int64_t i = 0; i < count; ++i) {
    const auto position = static_cast<size_t>(order[static_cast<size_t>(batch.first_position + i)]);
    const int64_t id = split_.ids[position];
    split_.images->read(id, image);
    if (i == 0) batch.images = at::empty({count, image.channels, image.height, image.width}, pinned.dtype(at::kFloat));
    if (image.channels != batch.images.size(1) || image.height != batch.images.size(2) ||
        image.width != batch.images.size(3)) {
      throw DataError(fmt::format(
          "image {} of the split '{}' has {} channels and {}x{} pixels, others have {} and {}x{}", id, split_.name,
          image.channels, image.height, image.width, batch.images.size(1), batch.images.size(2), batch.images.size(3)));
    }
    transform_(image, epoch, id, slot(batch.images, i));
    batch.labels.mutable_data_ptr<int64_t>()[i] = split_.labels[position];
    batch.sample_ids.mutable_data_ptr<int64_t>()[i] = id;
    if (!split_.label_sets.empty()) sets.add(split_.label_sets.of(static_cast<int64_t>(position)));
  }
  if (!sets.empty()) {
    batch.set_offsets = to_tensor(sets.offsets, pinned);
    batch.set_classes = to_tensor(sets.classes, pinned);
  }
  return batch;
}

Loader training_loader(const Dataset& dataset, const LoaderOptions& options, uint64_t seed, bool pin_memory) {
  return Loader(dataset.train,
                Transform(normalisation_for(options.normalisation, dataset), {options.pad, options.flip, seed}),
                {.batch_size = options.batch_size,
                 .workers = options.resolved_workers(busy_threads(pin_memory)),
                 .prefetch = options.prefetch,
                 .shuffle_seed = seed,
                 .drop_last = options.drop_last,
                 .pin_memory = pin_memory});
}

Loader evaluation_loader(const Dataset& dataset, const Split& split, const LoaderOptions& options, bool pin_memory) {
  return Loader(split, Transform(normalisation_for(options.normalisation, dataset), {}),
                {.batch_size = options.resolved_eval_batch_size(),
                 .workers = options.resolved_workers(busy_threads(pin_memory)),
                 .prefetch = options.prefetch,
                 .shuffle_seed = std::nullopt,
                 .drop_last = false,
                 .pin_memory = pin_memory});
}

}  // namespace settrain
