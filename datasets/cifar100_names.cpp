#include "datasets/cifar100_names.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace settrain {
namespace {

struct Superclass {
  const char* name;
  std::array<const char*, 5> classes;
};

constexpr Superclass kCifarSuperclasses[] = {
    {"aquatic_mammals", {"beaver", "dolphin", "otter", "seal", "whale"}},
    {"fish", {"aquarium_fish", "flatfish", "ray", "shark", "trout"}},
    {"flowers", {"orchid", "poppy", "rose", "sunflower", "tulip"}},
    {"food_containers", {"bottle", "bowl", "can", "cup", "plate"}},
    {"fruit_and_vegetables", {"apple", "mushroom", "orange", "pear", "sweet_pepper"}},
    {"household_electrical_devices", {"clock", "keyboard", "lamp", "telephone", "television"}},
    {"household_furniture", {"bed", "chair", "couch", "table", "wardrobe"}},
    {"insects", {"bee", "beetle", "butterfly", "caterpillar", "cockroach"}},
    {"large_carnivores", {"bear", "leopard", "lion", "tiger", "wolf"}},
    {"large_man-made_outdoor_things", {"bridge", "castle", "house", "road", "skyscraper"}},
    {"large_natural_outdoor_scenes", {"cloud", "forest", "mountain", "plain", "sea"}},
    {"large_omnivores_and_herbivores", {"camel", "cattle", "chimpanzee", "elephant", "kangaroo"}},
    {"medium_mammals", {"fox", "porcupine", "possum", "raccoon", "skunk"}},
    {"non-insect_invertebrates", {"crab", "lobster", "snail", "spider", "worm"}},
    {"people", {"baby", "boy", "girl", "man", "woman"}},
    {"reptiles", {"crocodile", "dinosaur", "lizard", "snake", "turtle"}},
    {"small_mammals", {"hamster", "mouse", "rabbit", "shrew", "squirrel"}},
    {"trees", {"maple_tree", "oak_tree", "palm_tree", "pine_tree", "willow_tree"}},
    {"vehicles_1", {"bicycle", "bus", "motorcycle", "pickup_truck", "train"}},
    {"vehicles_2", {"lawn_mower", "rocket", "streetcar", "tank", "tractor"}},
};

Cifar100Names make_names() {
  Cifar100Names names;
  for (const Superclass& superclass : kCifarSuperclasses) {
    names.coarse.push_back(superclass.name);
    names.fine.insert(names.fine.end(), superclass.classes.begin(), superclass.classes.end());
  }
  std::sort(names.fine.begin(), names.fine.end());
  names.coarse_of.resize(names.fine.size());
  for (size_t coarse = 0; coarse < std::size(kCifarSuperclasses); ++coarse) {
    for (const char* name : kCifarSuperclasses[coarse].classes) {
      const auto fine = std::lower_bound(names.fine.begin(), names.fine.end(), name) - names.fine.begin();
      names.coarse_of[static_cast<size_t>(fine)] = static_cast<int64_t>(coarse);
    }
  }
  return names;
}

}  // namespace

const Cifar100Names& cifar100_names() {
  static const Cifar100Names names = make_names();
  return names;
}

}  // namespace settrain
