#include "src/loader/data_options.h"

#include <algorithm>
#include <thread>

#include "src/loader/normalisation.h"

namespace settrain {
namespace {

constexpr double kMostInABatch = 1 << 20;

}  // namespace

config::Keys loader_keys() {
  using config::key;
  using O = LoaderOptions;
  std::vector<std::string> normalisations = normalisation_names();
  normalisations.insert(normalisations.begin(), "auto");
  return {
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
      key("augmentation.pad", &O::pad, 0,
          "Black border around a training image, from which a crop of the image's own size is drawn at random.")
          .at_least(0)
          .at_most(1024)
          .in("pixels"),
      key("augmentation.flip", &O::flip, false, "Mirror training images left to right with probability one half."),
      key("normalisation", &O::normalisation, "auto",
          "Statistics with which pixels are centred and scaled; auto is the data set's usual ones. For cifar100 these "
          "are CIFAR-10's, as in the papers' experiments.")
          .one_of(std::move(normalisations)),
  };
}

int64_t LoaderOptions::resolved_workers(int64_t busy_threads) const {
  if (workers != kAuto) return workers;
  return std::max<int64_t>(1, static_cast<int64_t>(std::thread::hardware_concurrency()) - busy_threads);
}

}  // namespace settrain
