// The registered data sets, each in the file of its name; imagenet_lt is in file_list.cpp.
#pragma once

#include "datasets/registry.h"

namespace settrain {

DatasetEntry cifar100_entry();
DatasetEntry fashion_mnist_entry();
DatasetEntry features_entry();
DatasetEntry file_list_entry();
DatasetEntry image_folder_entry();
DatasetEntry imagenet_entry();
DatasetEntry imagenet_lt_entry();
DatasetEntry plantnet300k_entry();
DatasetEntry synthetic_entry();

}  // namespace settrain
