#include "datasets/cifar100.h"
#include "datasets/fashion_mnist.h"
#include "datasets/file_list.h"
#include "datasets/registry.h"
#include "datasets/synthetic.h"
#include "datasets/validation_split.h"

namespace settrain {
namespace {

// A data set's own keys, and those of holding out validation images.
config::Keys with_split(config::Keys keys) {
  for (config::Key& key : SplitOptions::keys()) keys.push_back(std::move(key));
  return keys;
}

Dataset synthetic_of(const config::Config& config) {
  auto options = config.read<SyntheticOptions>("data");
  if (options.seed == SyntheticOptions::kRunSeed) options.seed = config.get<int64_t>("seed");
  return make_synthetic(options);
}

}  // namespace

void register_builtin_datasets(DatasetRegistry& registry) {
  registry.add({"fashion_mnist",
                "Fashion-MNIST (Xiao et al. 2017): 70,000 grey images of clothes, 28x28, 10 classes; superclasses tops "
                "(T-shirt/top, "
                "pullover, dress, coat, shirt), shoes (sandal, sneaker, ankle boot), trousers and bags.",
                with_split(FashionMnistOptions::keys()), [](const config::Config& config) {
                  return load_fashion_mnist(config.read<FashionMnistOptions>("data"),
                                            config.read<SplitOptions>("data"));
                }});
  registry.add({"cifar100", "CIFAR-100 (Krizhevsky 2009): 60,000 colour images, 32x32, 100 classes in 20 superclasses.",
                with_split(Cifar100Options::keys()), [](const config::Config& config) {
                  return load_cifar100(config.read<Cifar100Options>("data"), config.read<SplitOptions>("data"));
                }});
  registry.add({"file_list", "Images that text files list with one label each, or several.", FileListOptions::keys(),
                [](const config::Config& config) { return load_file_list(config.read<FileListOptions>("data")); }});
  registry.add({"synthetic", "Images made from a known P(y | x), so that the best possible accuracy is known.",
                SyntheticOptions::keys(), synthetic_of});
}

}  // namespace settrain
