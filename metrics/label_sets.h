// Accuracies by all labels of an image, for data whose images have several. `eval.label_sets` measures them as a
// metric.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "metrics/entries.h"

namespace settrain {

/// Comparisons with an image's labels Y, each a mean over images (of equal scores the smaller class comes first):
///
///     top5_recall       the share of Y among the 5 largest scores
///     avg5_recall       the share of Y in the set, where sets hold 5 classes on average (thesis, algorithm 1)
///     avg5_f1           F1 of the set, 2 |set and Y| / (|set| + |Y|)
///     avg5_micro_f1     F1 of all pairs of an image and a class at once
///     avg5_macro_f1     the mean over classes that are a label of some image of their F1
///     avg5_size, avg5_lambda   the realised mean size of the sets, and their threshold
///     sparse_top_weight <q, 1_Y>/|Y|, with q the projection of the scaled scores on the top-|Y| simplex: the answer
///                       where the number of labels is known (thesis, section 6.2.7)
///     sparse_top_f1     F1 of the set of the classes whose weight in it is above 0
///     sparse_top_size   the mean size of these sets
///
/// `scores` [images, classes] as check_scores() takes them; `label_sets` [images, classes] bool on their device, at
/// least one label an image: throws ShapeError. Reads score_scale and threshold_scores of `context`, as
/// average_k_values() does.
std::vector<MetricValue> label_set_accuracies(const at::Tensor& scores, const at::Tensor& label_sets,
                                              const config::Integers& top_k, const AverageKOptions& average_k,
                                              const MetricContext& context);

}  // namespace settrain
