// CIFAR-100: Krizhevsky, "Learning multiple layers of features from tiny images" (2009).
#pragma once

#include <string>

#include "datasets/dataset.h"
#include "datasets/registry.h"
#include "datasets/validation_split.h"
#include "src/config/key.h"

namespace settrain {

struct Cifar100Options {
  std::string root;
  bool verify = false;

  static config::Keys keys();
};

/// 50,000 training and 10,000 test images, RGB, 32x32, in 100 balanced classes of 20 superclasses, from the binary
/// version's train.bin and test.bin.
///
/// Throws DataError where a file is missing, has another size, has labels out of range or in the wrong superclass or,
/// with `verify`, another digest than the published one.
Dataset load_cifar100(const Cifar100Options& options, const SplitOptions& split);

DatasetEntry cifar100_entry();

}  // namespace settrain
