// Artificial label noise, the section data.label_noise: Berrada et al. 2018, section 5.1; Garcin et al. 2022,
// section 4.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "src/config/config.h"
#include "src/config/schema.h"

namespace settrain {

struct LabelNoiseOptions {
  std::string kind;        // none, superclass, index_block, uniform or confusion
  double rate = 0;         // probability that a label is drawn anew
  int64_t block_size = 0;  // classes; for index_block
  int64_t seed = 0;
  std::string matrix{};  // file for confusion, see read_confusion_matrix()
  enum class NewLabel { kAny, kOther };
  NewLabel new_label = NewLabel::kAny;  // whether a label drawn anew may stay the same
};

config::Section label_noise_section();

/// The section's values. A seed of `auto` becomes the run's.
LabelNoiseOptions read_label_noise(const config::Config& config);

/// The effect of the noise. Fractions are of the training samples unless stated otherwise.
struct LabelNoiseReport {
  std::string kind;
  double nominal_rate = 0;    // expected fraction of labels drawn anew; for confusion, the effective rate
  double effective_rate = 0;  // expected fraction of labels that change: one drawn anew may be the same
  double changed_rate = 0;    // fraction of labels that changed
  int64_t changed = 0;
  // The fraction of the changed labels that stayed within the true superclass. None without changed labels or without
  // superclasses.
  std::optional<double> within_superclass;
  std::string digest;  // SHA-256 of the noisy labels as little-endian int64, in the order of the training split
};

/// With probability `rate`, replaces a label of the training split by one drawn uniformly from a group of classes that
/// includes the label itself: its superclass (kind superclass); its block of `block_size` consecutive class indices
/// (index_block; the last block may be shorter); or all classes (uniform). So a rate p changes p (1 - 1/size) of the
/// labels. With NewLabel::kOther it is drawn from the other classes of the group, and a rate p changes p of the labels,
/// but for groups of one class, whose labels stay. The kind confusion draws every label anew, with the probabilities of
/// a matrix. Validation and test labels stay clean. The new label of a sample depends only on (seed, sample id, label).
///
/// Throws KeyError where the kind is superclass and the data set has no superclasses, and where the data set has label
/// sets; DataError where read_confusion_matrix() does.
LabelNoiseReport apply_label_noise(const LabelNoiseOptions& options, Dataset& dataset);

/// Reads a text file of `num_classes` lines with as many numbers each, separated by blanks or commas. Line y holds
/// P(new label | label y). Empty lines and comments after a # are skipped. Returns [num_classes, num_classes]
/// row-major. Throws DataError naming file and line where a line has another count of numbers, has something that is no
/// number, is negative or is not finite, or does not add up to 1 within 1e-6; naming the file where the count of lines
/// is wrong.
std::vector<double> read_confusion_matrix(const std::filesystem::path& file, int64_t num_classes);

}  // namespace settrain
