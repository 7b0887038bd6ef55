#include "src/loader/data_options.h"

#include <algorithm>
#include <thread>

#include "src/loader/normalisation.h"
#include "src/loader/pipeline_options.h"

namespace settrain {
namespace {

constexpr double kMostInABatch = 1 << 20;

}  // namespace

config::Keys loader_keys() {
  using config::key;
  using O = LoaderOptions;
  std::vector<std::string> normalisations = normalisation_names();
  normalisations.insert(normalisations.begin(), "auto");
  config::Keys keys = {
      key("batch_size", &O::batch_size, 128, "Images in a training batch.")
          .at_least(1)
          .at_most(kMostInABatch)
          .in("images"),
      key("eval_batch_size", &O::eval_batch_size, O::kAuto, "Images in an evaluation batch; auto is batch_size.")
          .at_least(1)
          .at_most(kMostInABatch)
          .in("images")
          .word("auto", O::kAuto),
      key("workers", &O::workers, O::kAuto,
          "Threads that load images. More of them than there are cores beside the compute threads slow training down; "
          "auto is the number of those cores, and at least one. Results do not depend on it.")
          .at_least(1)
          .at_most(1024)
          .in("threads")
          .word("auto", O::kAuto)
          .free(),
      key("prefetch", &O::prefetch, 4, "Batches made ahead of the one in use; no more threads than that are busy.")
          .at_least(1)
          .at_most(1024)
          .in("batches")
          .free(),
      key("drop_last", &O::drop_last, false,
          "Leave out an epoch's last training batch where it is smaller than batch_size."),
      key("normalisation", &O::normalisation, "auto",
          "Statistics with which pixels are centred and scaled; auto is the data set's usual ones. For cifar100 these "
          "are CIFAR-10's, as in the papers' experiments.")
          .one_of(std::move(normalisations)),
      key("on_bad_image", &O::on_bad_image, "error",
          "What becomes of an image that cannot be read: error ends the run and names the file; skip leaves it out of "
          "its batch, in training and in evaluation, and the log lists it; a training batch of which nothing is left ends "
          "the run.")
          .one_of({"error", "skip"}),
  };
  const config::Keys pipeline = PipelineOptions::keys();
  keys.insert(keys.begin(), pipeline.begin(), pipeline.end());
  return keys;
}

int64_t LoaderOptions::resolved_workers(int64_t busy_threads) const {
  if (workers != kAuto) return workers;
  return std::max<int64_t>(1, static_cast<int64_t>(std::thread::hardware_concurrency()) - busy_threads);
}

}  // namespace settrain
