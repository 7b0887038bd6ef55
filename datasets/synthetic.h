// Images made from a known P(y | x), so that the best possible accuracy is known too.
#pragma once

#include "datasets/dataset.h"
#include "datasets/registry.h"
#include "datasets/synthetic_options.h"

namespace settrain {

/// Classes come in superclasses of `group_size` consecutive indices (the last may be smaller). Every class has a cell
/// of its own; all images of a cell are its template, a smooth random pattern, plus uniform noise of at most
/// +-`pixel_noise` levels. Any two templates differ by more than twice that in some pixel, so an image reveals its cell
/// and P(y | x) = P(y | cell).
///
/// Joint distribution. Prior: P(y = j) is proportional to imbalance^(-j / (num_classes - 1)), so the first class is
/// `imbalance` times as frequent as the last. Cell: a sample of class y lies in y's own cell with probability 1 - a,
/// and with probability a in a cell drawn uniformly from y's superclass, y's own included. a rises evenly from 0.5 X
/// that some superclasses need larger sets than others.
///
/// Validation and test samples are drawn from that distribution. The training split's class counts follow the prior as
/// closely as whole numbers can, with at least one sample of every class where `train_size` allows. A sample is a
/// function of (seed, id); ids go on through train, val and test. Images are made on demand.
///
/// With labels_per_image = n > 1 a sample's label set holds its label, and the different ones among n - 1 more draws
/// from P(y | cell).
///
/// `options.seed` is a real seed here. Throws DataError where two templates come out too alike for `pixel_noise`.
Dataset make_synthetic(const SyntheticOptions& options);

DatasetEntry synthetic_entry();

}  // namespace settrain
