// Where the label stands among a sample's scores: all top-K accuracies at once, without a sort.
#pragma once

#include <ATen/core/Tensor.h>

namespace settrain {

/// The rank of every label, from 0: the number of classes with a larger score plus the number of classes with the same
/// score and a smaller index. A label is among the K largest scores where its rank is below K, so that ties go to the
/// smaller index and exactly K classes are inside.
///
/// `scores` [samples, classes] float, `labels` [samples] int64 in [0, classes), on one device. Returns [samples] int64
/// on that device. One pass over the scores on the CPU; elsewhere through blocks of rows, so that the memory on top
/// does not grow with the number of samples.
at::Tensor label_ranks(const at::Tensor& scores, const at::Tensor& labels);

}  // namespace settrain
