// Batches of a split, made by worker threads ahead of their use.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "src/core/ordered_prefetch.h"
#include "src/loader/data_options.h"
#include "src/loader/resident_images.h"
#include "src/loader/sampler.h"
#include "src/loader/transform.h"

namespace settrain {

/// An image that could not be read.
struct SkippedImage {
  int64_t id;
  std::string reason;
};

/// The images that could not be read and were left out (data.on_bad_image), of all loaders of a run, and the training
/// batches that were left out since a single image of them could be read. Thread-safe.
class SkippedImages {
 public:
  /// `logs`: whether add() and add_batches_of_one() log. Where false, what they count is kept for the take_...() calls.
  explicit SkippedImages(bool logs = true) : logs_(logs) {}

  /// Logs `reason` as a warning, once for every image. `image`: its name.
  void add(const std::string& image, const std::string& reason);

  /// Images and reasons that were added since the last call and not logged.
  std::map<std::string, std::string> take_unreported();

  /// The number of different images so far, and whether the one of that name is among them.
  int64_t count() const;
  bool contains(const std::string& image) const;

  /// Counts batches of one image, and logs a warning when the first come.
  void add_batches_of_one(int64_t batches);
  /// The batches that were counted since the last call and not logged.
  int64_t take_unreported_batches();
  /// The number of such batches so far.
  int64_t batches_of_one() const;

 private:
  bool logs_;
  mutable std::mutex mutex_;
  std::set<std::string> images_;
  std::map<std::string, std::string> unreported_;  // reasons by image
  int64_t batches_of_one_ = 0, unreported_batches_ = 0;
};

struct Batch {
  at::Tensor images;           // [batch * views, channels, height, width] in the transform's format, on the CPU or the
                               // device of resident images; the views of an image one after the other. Or features
                               // [batch, width] float
  at::Tensor labels;           // [batch] int64
  at::Tensor sample_ids;       // [batch] int64: Split::ids
  at::Tensor set_offsets;      // [batch + 1] int64: the labels of sample i are set_classes[set_offsets[i]] to
  at::Tensor set_classes;      // set_classes[set_offsets[i + 1] - 1]; both undefined where samples have one label each
  int64_t first_position = 0;  // of the first sample in the epoch's order
  int64_t views = 1;           // of every image
  std::vector<SkippedImage> skipped;  // images that the batch lacks

  int64_t size() const { return labels.defined() ? labels.size(0) : 0; }
};

struct LoaderSettings {
  int64_t batch_size = 1;
  int64_t workers = 1;                                  // threads
  int64_t prefetch = 1;                                 // batches made ahead
  std::optional<uint64_t> shuffle_seed = std::nullopt;  // of the order; none: the split's own order
  Sampling sampling = {};                               // of a shuffled order
  bool drop_last = false;
  int64_t rank = 0, world = 1;  // processes divide the batches: this one makes rank, rank + world, ...
  std::shared_ptr<SkippedImages> skipped = nullptr;  // records bad images, which are left out; null: they are errors
  bool pin_memory = false;  // page-locked tensors, for fast copies to a CUDA device; ignored where there is none
  // The split's images on a device, which cuts the views: bytes, with a pipeline that resizes none. Null: worker
  // threads read the images.
  std::shared_ptr<const ResidentImages> resident = nullptr;
  // Rows of numbers in place of the split's images: they come as [batch, width] floats, without a transform. Null: it
  // has images.
  std::shared_ptr<const FeatureTable> features = nullptr;
  bool features_by_position = false;  // a sample's row is its position in the split, and not its id
};

/// Every bit of the batches is a function of the split, the transform, the batch size, the seeds and the epoch, and not
/// of the number of workers. Used by one thread.
class Loader {
 public:
  /// Throws ConfigError where `drop_last` leaves no batch at all, DataError where the split is empty, and
  /// std::invalid_argument where the transform does not suit resident images.
  Loader(Split split, Transform transform, const LoaderSettings& settings);
  Loader(const Loader&) = delete;  // the worker threads hold on to it
  Loader& operator=(const Loader&) = delete;

  /// Starts the epoch at its batch `first_batch`, counted over all processes, for resuming within an epoch. An epoch in
  /// progress is abandoned. Epochs count from 0.
  void start_epoch(int64_t epoch, int64_t first_batch = 0);

  /// Moves the next of this process' batches into `batch`; false after the epoch's last. Throws DataError, naming the
  /// file, where an image of the batch cannot be read; where bad ones are skipped, a batch may come out empty.
  bool next(Batch& batch);

  /// The number of batches of all processes.
  int64_t batches_per_epoch() const;
  /// Samples in the split, and so in an epoch.
  int64_t size() const { return split_.size(); }
  const LoaderSettings& settings() const { return settings_; }
  const Transform& transform() const { return transform_; }

 private:
  // The product of a worker thread.
  struct Prepared {
    Batch batch;        // complete; or without images, where these are resident or rows of features
    at::Tensor places;  // for ResidentImages::render(); or the numbers of the rows, [batch] int64
  };
  Prepared prepare(const std::vector<Draw>& order, int64_t epoch, int64_t number) const;
  void locate(const Draw& draw, int64_t epoch, int64_t* places) const;

  Split split_;
  Transform transform_;
  LoaderSettings settings_;
  std::unique_ptr<OrderedPrefetch<Prepared>> prefetch_;  // last: its threads use the members above
};

/// The settings that all loaders of a run share.
struct LoaderContext {
  LoaderOptions options;
  PipelineOptions pipeline;
  Normalisation normalisation{};  // the one that the options name, see normalisation_for()
  PixelFormat format{};
  std::shared_ptr<SkippedImages> skipped = std::make_shared<SkippedImages>();  // used where the options say skip
  bool pin_memory = false;
  int64_t epochs = 1;                                         // of the run
  int64_t rank = 0, world = 1;                                // of processes, see LoaderSettings
  std::shared_ptr<const ResidentSources> resident = nullptr;  // null: no images stay on the device

  // By the name of a split, a row for each of its samples, in its order, which a model's body made of them
  // (src/train/feature_cache.h): they take the place of its images, but where these come in ten crops.
  std::map<std::string, std::shared_ptr<const FeatureTable>> features = {};

  Sampling sampling() const { return {options.sampler, epochs, options.repeats}; }
};

/// Makes the inputs of a model from images, without augmentation. `height` and `width` are those of all images, or 0
/// where they differ.
Transform evaluation_transform(const LoaderContext& context, int64_t height, int64_t width, ViewUse use);

/// Uninitialised memory for `views` views, [views, channels, height, width], in the transform's type and layout.
at::Tensor empty_views(int64_t views, const Transform& transform, const at::TensorOptions& options = {});

/// Shuffled and augmented batches of the training split.
Loader training_loader(const Dataset& dataset, const LoaderContext& context, uint64_t seed);

/// The same without shuffling, in the split's own order, and none left out.
Loader training_loader_in_order(const Dataset& dataset, const LoaderContext& context);

/// Batches of any split of the data set in its own order, without augmentation, none left out. `use` is the centre or
/// ten crops.
Loader evaluation_loader(const Dataset& dataset, const Split& split, const LoaderContext& context,
                         ViewUse use = ViewUse::kEvaluation);

}  // namespace settrain
