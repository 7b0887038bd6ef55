// The official names of CIFAR-100's classes and superclasses.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace settrain {

struct Cifar100Names {
  std::vector<std::string> coarse;  // [20] alphabetical, which is the order of the coarse labels
  std::vector<std::string> fine;    // [100] alphabetical, which is the order of the fine labels
  std::vector<int64_t> coarse_of;   // [100] the superclass of every class
};

const Cifar100Names& cifar100_names();

}  // namespace settrain
