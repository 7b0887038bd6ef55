// Several labels a sample.
#pragma once

#include <ATen/core/Tensor.h>

namespace settrain {

/// The label sets of a batch, one after the other: those of sample i are classes[offsets[i]] to classes[offsets[i + 1]
/// - 1]. A class named twice counts once.
struct LabelSets {
  at::Tensor offsets;  // [batch + 1] int64, from 0
  at::Tensor classes;  // [labels of the batch] int64 in [0, classes)

  bool defined() const { return offsets.defined(); }
};

/// Throws ShapeError where shapes or dtypes are others, or the sets are on another device than `scores` [batch,
/// classes]; on the CPU also where a set is empty or a class out of range.
void check_label_sets(const LabelSets& sets, const at::Tensor& scores);

/// [batch, classes] 1 for the classes of a sample's set and 0 elsewhere, in the dtype of `scores`; where no sets are
/// defined, those of `labels` [batch] alone.
at::Tensor label_indicator(const LabelSets& sets, const at::Tensor& labels, const at::Tensor& scores);

}  // namespace settrain
