// The best accuracy that any classifier can have, where P(y | x) is known because the data were made.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "metrics/metric.h"

namespace settrain {

/// The expected accuracy, over the labels, of the Bayes-optimal sets on the given samples; named as the metrics are, so
/// that a difference of two values of one name is a regret.
///
/// "top5": the mean over the samples of the sum of the K largest probabilities. "avg5": the K * samples largest of all
/// probabilities, summed and divided by the samples; where K * samples is not whole, the next one counts by the
/// fraction (a set that holds it with that probability), and "avg5_size" is K, or the number of classes where that is
/// less.
///
/// `probabilities` [samples, classes] float32 or float64, rows sum to 1. Sums are taken in float64.
std::vector<MetricValue> bayes_accuracy(const at::Tensor& probabilities, const config::Integers& top_k,
                                        const config::Reals& average_k);

}  // namespace settrain
