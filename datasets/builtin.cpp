#include "datasets/entries.h"

namespace settrain {

void register_builtin_datasets(DatasetRegistry& registry) {
  registry.add(fashion_mnist_entry());
  registry.add(cifar100_entry());
  registry.add(image_folder_entry());
  registry.add(file_list_entry());
  registry.add(imagenet_entry());
  registry.add(imagenet_lt_entry());
  registry.add(plantnet300k_entry());
  registry.add(features_entry());
  registry.add(synthetic_entry());
}

}  // namespace settrain
