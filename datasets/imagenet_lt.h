// ImageNet-LT: Liu et al., "Large-Scale Long-Tailed Recognition in an Open World" (CVPR 2019).
#pragma once

#include "datasets/dataset.h"
#include "datasets/file_list.h"
#include "datasets/image_files.h"
#include "datasets/registry.h"
#include "src/config/key.h"

namespace settrain {

/// The keys of a file_list, with the defaults of ImageNet-LT. A struct of its own, since its keys are other keys.
struct ImagenetLtOptions : FileListOptions {
  static config::Keys keys();
};

/// A file_list of the published lists, whose classes are named by the folders of ImageNet that they come from. Throws
/// DataError that says at once what is missing, where it was looked for and where it comes from, and what
/// load_file_list() throws.
Dataset load_imagenet_lt(const ImagenetLtOptions& options, const ImageFileOptions& image_options);

DatasetEntry imagenet_lt_entry();

}  // namespace settrain
