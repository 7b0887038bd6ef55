#include "datasets/cifar100.h"
#include "datasets/fashion_mnist.h"
#include "datasets/file_list.h"
#include "datasets/image_folder.h"
#include "datasets/imagenet.h"
#include "datasets/imagenet_lt.h"
#include "datasets/plantnet300k.h"
#include "datasets/registry.h"
#include "datasets/synthetic.h"
#include "datasets/validation_split.h"

namespace settrain {
namespace {

config::Keys joined(config::Keys keys, config::Keys more) {
  keys.insert(keys.end(), more.begin(), more.end());
  return keys;
}

// A data set's own keys, and those of holding out validation images.
config::Keys with_split(config::Keys keys) {
  return joined(std::move(keys), SplitOptions::keys());
}

// A data set's own keys, and those of what its files become.
config::Keys with_image_keys(config::Keys keys) {
  return joined(std::move(keys), ImageFileOptions::keys());
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
  registry.add({"image_folder", "Images in folders root/{train,val,test}/CLASS.",
                with_image_keys(ImageFolderOptions::keys()), [](const config::Config& config) {
                  return load_image_folder(config.read<ImageFolderOptions>("data"),
                                           config.read<ImageFileOptions>("data"));
                }});
  registry.add({"file_list", "Images that text files list with one label each, or several.",
                with_image_keys(FileListOptions::keys()), [](const config::Config& config) {
                  return load_file_list(config.read<FileListOptions>("data"), config.read<ImageFileOptions>("data"));
                }});
  registry.add(
      {"imagenet",
       "ImageNet (Russakovsky et al. 2015): 1,281,167 training images of 1,000 classes, of which some are held out "
       "for validation; the 50,000 official validation images are the test split.",
       with_image_keys(joined(ImagenetOptions::keys(), SplitOptions::keys(50000, "balanced"))),
       [](const config::Config& config) {
         return load_imagenet(config.read<ImagenetOptions>("data"), config.read<SplitOptions>("data"),
                              config.read<ImageFileOptions>("data"));
       }});
  registry.add({"imagenet_lt",
                "ImageNet-LT (Liu et al. 2019): 115,846 training images of 1,000 classes, 5 to 1,280 of each, by the "
                "published lists.",
                with_image_keys(ImagenetLtOptions::keys()), [](const config::Config& config) {
                  return load_imagenet_lt(config.read<ImagenetLtOptions>("data"),
                                          config.read<ImageFileOptions>("data"));
                }});
  registry.add({"plantnet300k",
                "Pl@ntNet-300K (Garcin et al. 2021): 306,146 photographs of 1,081 plant species; superclasses are the "
                "303 genera.",
                with_image_keys(Plantnet300kOptions::keys()), [](const config::Config& config) {
                  return load_plantnet300k(config.read<Plantnet300kOptions>("data"),
                                           config.read<ImageFileOptions>("data"));
                }});
  registry.add({"synthetic", "Images made from a known P(y | x), so that the best possible accuracy is known.",
                SyntheticOptions::keys(), synthetic_of});
}

}  // namespace settrain
