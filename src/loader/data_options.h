// Keys of the section `data` that every data set has: how images become batches.
#pragma once

#include <cstdint>
#include <string>

#include "datasets/registry.h"
#include "src/config/key.h"

namespace settrain {

struct LoaderOptions {
  int64_t batch_size = 0, eval_batch_size = 0;
  int64_t workers = 0, prefetch = 0;
  bool drop_last = false;
  std::string sampler, normalisation, on_bad_image, on_device;

  static constexpr int64_t kAuto = 0;  // what the word auto stands for in eval_batch_size and workers

  /// Images in an evaluation batch: the training batch's where `auto`.
  int64_t resolved_eval_batch_size() const { return eval_batch_size == kAuto ? batch_size : eval_batch_size; }
  /// Loader threads: the cores that are left by the `busy_threads` where `auto`, and at least one.
  int64_t resolved_workers(int64_t busy_threads) const;
};

/// These keys and those of the pipelines. The data sets name the normalisations.
config::Keys loader_keys(const DatasetRegistry& datasets);

}  // namespace settrain
