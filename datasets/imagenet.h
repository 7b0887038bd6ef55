// ImageNet: Russakovsky et al., "ImageNet Large Scale Visual Recognition Challenge" (2015).
#pragma once

#include <cstdint>
#include <string>

#include "datasets/dataset.h"
#include "datasets/image_files.h"
#include "datasets/registry.h"
#include "datasets/validation_split.h"
#include "src/config/key.h"

namespace settrain {

struct ImagenetOptions {
  std::string root, val_labels, synsets;

  static config::Keys keys();
};

/// The challenge's images, root/train/WNID/* and root/val: in folders WNID too, or all in one folder with the labels of
/// imagenet_labels.h. The classes are the folders of train in the order of their names. The official validation images
/// are the split `test`, as in the papers; `val` is held out of the training images. A sample's id is its place among
/// all files, train and then val, in the order of their paths.
///
/// Throws DataError that says at once what is missing, where it was looked for and where it comes from; KeyError where
/// keys do not fit the images.
Dataset load_imagenet(const ImagenetOptions& options, const SplitOptions& split, const ImageFileOptions& image_options);

/// ImageNet's page and terms, and how to get its images: also for who has lists of them.
Download imagenet_download();

DatasetEntry imagenet_entry();

}  // namespace settrain
