// The features that a frozen body makes of each image, kept in files while its head is trained (data.cache_features).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "datasets/feature_table.h"
#include "src/core/progress_bar.h"
#include "src/train/experiment.h"

namespace settrain {

/// Where a run may keep the features of images: those of the training split, in batches of its batch size, and those of
/// the splits that are evaluated by the centre of their images.
struct FeaturePlan {
  std::vector<std::string> splits;
  int64_t images = 0, width = 0;                                 // rows of all splits, and numbers of each
  FeatureTable::Stored stored = FeatureTable::Stored::kFloat32;  // data.cache_precision

  int64_t bytes() const { return images * width * FeatureTable::bytes_of(stored); }
};

/// The plan of a run of which only the head trains, for more than one epoch, on images that come the same in every
/// epoch. Nothing for others, and where data.cache_features is off. Throws KeyError where it is on and the run is none
/// of these. The model makes the features of one image for it.
std::optional<FeaturePlan> feature_plan(const Experiment& run);

/// Makes the plan's features by the model as it is, which is restored before, and has the loaders of `run` give them in
/// place of images from now on. Files under the same digest (body, images, how they are read and computed, program,
/// threads) are used as they are: in $SETTRAIN_CACHE/features where that is set, else in `run_folder`/features. A file
/// grows by whole batches, under the name NAME.partial, and what a stopped or killed process left is gone on with. One
/// process makes a file, and others that want it wait. Each process of a group makes its share of the batches. A last
/// batch of training images is filled up with others, so that every row is made in a batch of one size.
///
/// Collective. `run_folder`: of the first process. Does nothing without a plan. Throws DataError where an image cannot
/// be read or has features that are not finite, RunError where a file cannot be written or read, and Interrupted.
void cache_features(Experiment& run, const std::filesystem::path& run_folder, ProgressBar& bar);

/// Has the loaders give images again where the rows are rounded (data.cache_precision: bfloat16): after the training,
/// so that its results are those of `eval`, and of a run that was stopped after its last epoch and gone on with.
void drop_rounded_features(Experiment& run);

/// Removes the files that cache_features() made in the run's folder. Rows in use stay readable.
void remove_cached_features(const std::filesystem::path& run_folder);

}  // namespace settrain
