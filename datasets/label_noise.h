// Artificial label noise: Berrada et al. 2018, section 5.1; Garcin et al. 2022, section 4.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "datasets/dataset.h"
#include "datasets/label_noise_options.h"
#include "src/config/config.h"

namespace settrain {

/// What the noise did. Fractions are of the training samples unless said otherwise.
struct LabelNoiseReport {
  std::string kind;
  double nominal_rate = 0;    // the fraction of labels drawn anew, on average; of confusion, the effective rate
  double effective_rate = 0;  // the fraction expected to change: a label drawn anew may come out as it was
  double changed_rate = 0;    // the fraction that did change
  int64_t changed = 0;
  // Of the changed labels, the fraction that is still in the true superclass; none where no label changed, or the data
  // set has no superclasses.
  std::optional<double> within_superclass;
  std::string digest;  // SHA-256 of the noisy labels as little-endian int64, in the order of the training split
};

/// With probability `rate`, replaces a label of the training split by one drawn uniformly from a group of classes,
/// itself included: those of its superclass; its block of `block_size` consecutive class indices (the last block may be
/// shorter); or all classes. So a rate p changes p (1 - 1/size) of the labels. `confusion` draws every label anew, by
/// the probabilities of a matrix. Validation and test labels stay clean. What happens to a sample depends on (seed,
/// sample id, label) alone.
///
/// Throws DataError where the kind is superclass and the data set has no superclasses, where the data set has label
/// sets, and where the matrix is not as confusion_matrix.h says.
LabelNoiseReport apply_label_noise(const LabelNoiseOptions& options, Dataset& dataset);

/// The same with the options of the config, and a ConfigError that tells where and how to fix it.
LabelNoiseReport apply_label_noise(const config::Config& config, Dataset& dataset);

}  // namespace settrain
