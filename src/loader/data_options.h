// Keys of the section `data` that every data set has: how images become batches.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "datasets/registry.h"
#include "src/config/key.h"

namespace settrain {

struct LoaderOptions {
  int64_t batch_size = 0, eval_batch_size = 0;
  int64_t workers = 0, prefetch = 0;
  bool drop_last = false;
  int64_t repeats = 1;
  std::string sampler, normalisation, on_bad_image;
  config::Switch on_device = config::Switch::kAuto;
  config::Switch cache_features = config::Switch::kAuto;
  std::string cache_precision;

  static constexpr int64_t kAuto = 0;  // the word auto in eval_batch_size and workers

  /// Images in an evaluation batch. `auto` is the size of training batches.
  int64_t resolved_eval_batch_size() const { return eval_batch_size == kAuto ? batch_size : eval_batch_size; }
  /// Loader threads. `auto` is the number of cores that `busy_threads` leave, at least one.
  int64_t resolved_workers(int64_t busy_threads) const;
};

/// The keys of LoaderOptions and PipelineOptions. `datasets` adds the choices of data.normalisation.
config::Keys loader_keys(const DatasetRegistry& datasets);

/// The choices of data.normalisation beside auto: none, and the statistics of the data sets.
std::vector<std::string> normalisation_names(const DatasetRegistry& datasets);

/// The statistics `name`, or the data set's usual ones where it is `auto`. Throws KeyError where they do not have the
/// data set's number of channels.
Normalisation normalisation_for(const DatasetRegistry& datasets, const std::string& name, const Dataset& dataset);

/// The name of these statistics among the choices of data.normalisation, or their numbers where they have none there.
std::string normalisation_name(const DatasetRegistry& datasets, const Normalisation& statistics);

}  // namespace settrain
