// Batches of a split, made by worker threads ahead of their use.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "src/core/ordered_prefetch.h"
#include "src/loader/data_options.h"
#include "src/loader/resident_images.h"
#include "src/loader/resident_sources.h"
#include "src/loader/sampler.h"
#include "src/loader/skipped_images.h"
#include "src/loader/transform.h"

namespace settrain {

/// An image that could not be read.
struct SkippedImage {
  int64_t id;
  std::string reason;
};

struct Batch {
  at::Tensor images;           // [batch * views, channels, height, width] in the transform's format, on the CPU or the
                               // device of resident images; the views of an image one after the other
  at::Tensor labels;           // [batch] int64
  at::Tensor sample_ids;       // [batch] int64: Split::ids
  at::Tensor set_offsets;      // [batch + 1] int64: the labels of sample i are set_classes[set_offsets[i]] to
  at::Tensor set_classes;      // set_classes[set_offsets[i + 1] - 1]; both undefined where samples have one label each
  int64_t first_position = 0;  // of its first sample in the epoch's order
  int64_t views = 1;           // of every image
  std::vector<SkippedImage> skipped;  // what the batch lacks

  int64_t size() const { return labels.defined() ? labels.size(0) : 0; }
};

/// How a loader goes through its split.
struct LoaderSettings {
  int64_t batch_size = 1;
  int64_t workers = 1;                                  // threads
  int64_t prefetch = 1;                                 // batches made ahead
  std::optional<uint64_t> shuffle_seed = std::nullopt;  // of the order; none: the split's own order
  Sampling sampling = {};                               // of a shuffled order
  bool drop_last = false;
  int64_t rank = 0, world = 1;  // of processes that divide the batches: this one makes rank, rank + world, ...
  std::shared_ptr<SkippedImages> skipped = nullptr;  // takes note of bad images, which are left out; null: an error
  bool pin_memory = false;  // page-locked tensors, for fast copies to a CUDA device; ignored where there is none
  // The split's images on a device, which makes the batches' images of them: bytes, by a pipeline that resizes none.
  // Null: worker threads make them.
  std::shared_ptr<const ResidentImages> resident = nullptr;
};

/// The batches, and so every bit in them, are a function of the split, the transform, the batch size, the seeds and the
/// epoch: not of the number of workers. Used by one thread.
class Loader {
 public:
  /// Throws ConfigError where `drop_last` leaves no batch at all, DataError where the split is empty, and
  /// std::invalid_argument where the transform does not suit resident images.
  Loader(Split split, Transform transform, const LoaderSettings& settings);
  Loader(const Loader&) = delete;  // the worker threads hold on to it
  Loader& operator=(const Loader&) = delete;

  /// Begins the epoch at its batch `first_batch`, of all processes', for resuming within an epoch. An epoch under way
  /// is given up. Epochs count from 0.
  void start_epoch(int64_t epoch, int64_t first_batch = 0);

  /// Moves the next of this process' batches into `batch`; false after the epoch's last. Throws DataError, naming the
  /// file, where an image of the batch cannot be read; where bad ones are skipped, a batch may come out empty.
  bool next(Batch& batch);

  /// In all processes.
  int64_t batches_per_epoch() const;
  /// Samples in the split, and so in an epoch.
  int64_t size() const { return split_.size(); }
  const LoaderSettings& settings() const { return settings_; }
  const Transform& transform() const { return transform_; }

 private:
  // What worker threads make.
  struct Prepared {
    Batch batch;        // complete, or without its images:
    at::Tensor places;  // of resident ones, for ResidentImages::render()
  };
  Prepared prepare(const std::vector<Draw>& order, int64_t epoch, int64_t number) const;
  void locate(const Draw& draw, int64_t epoch, int64_t* places) const;

  Split split_;
  Transform transform_;
  LoaderSettings settings_;
  std::unique_ptr<OrderedPrefetch<Prepared>> prefetch_;  // last: its threads use the members above
};

/// What the loaders of a run have in common.
struct LoaderContext {
  LoaderOptions options;
  PipelineOptions pipeline;
  Normalisation normalisation{};  // what the options name, see normalisation_for()
  PixelFormat format{};
  std::shared_ptr<SkippedImages> skipped = std::make_shared<SkippedImages>();  // used where the options say skip
  bool pin_memory = false;
  int64_t epochs = 1;                                         // of the run
  int64_t rank = 0, world = 1;                                // of processes, see LoaderSettings
  std::shared_ptr<const ResidentSources> resident = nullptr;  // null: no images stay on the device

  Sampling sampling() const { return {options.sampler, epochs}; }
};

/// What makes the inputs of a model out of images, without augmentation; `height` and `width` are those of all images,
/// or 0 where they differ.
Transform evaluation_transform(const LoaderContext& context, int64_t height, int64_t width, ViewUse use);

/// Memory for so many views, [views, channels, height, width], in the transform's type and layout.
at::Tensor empty_views(int64_t views, const Transform& transform, const at::TensorOptions& options = {});

/// Shuffled and augmented batches of the training split.
Loader training_loader(const Dataset& dataset, const LoaderContext& context, uint64_t seed);

/// Batches of any split of the data set in its own order, without augmentation, none left out. `use` is the centre or
/// ten crops.
Loader evaluation_loader(const Dataset& dataset, const Split& split, const LoaderContext& context,
                         ViewUse use = ViewUse::kEvaluation);

}  // namespace settrain
