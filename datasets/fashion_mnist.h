// Fashion-MNIST: Xiao, Rasul and Vollgraf, "Fashion-MNIST: a novel image dataset for benchmarking machine learning
// algorithms" (2017).
#pragma once

#include <string>

#include "datasets/dataset.h"
#include "datasets/registry.h"
#include "datasets/validation_split.h"
#include "src/config/key.h"

namespace settrain {

struct FashionMnistOptions {
  std::string root;
  bool verify = false;

  static config::Keys keys();
};

/// 60,000 training and 10,000 test images of clothes, grey, 28x28, in ten balanced classes. The superclasses are ours,
/// the data set has none: tops (T-shirt/top, Pullover, Dress, Coat, Shirt), shoes (Sandal, Sneaker, Ankle boot),
/// trousers (Trouser) and bags (Bag).
///
/// Throws DataError where a file is missing, corrupt, disagrees with another or, with `verify`, is not the published
/// one.
Dataset load_fashion_mnist(const FashionMnistOptions& options, const SplitOptions& split);

DatasetEntry fashion_mnist_entry();

}  // namespace settrain
