// The labels of ImageNet's validation images, which come in one folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace settrain {

/// Reads the labels of the images `names`, which are sorted, in one of these forms, told apart by the first line:
///   `FILE WNID` or `FILE INDEX`, a blank between them; an index counts `classes` from 0;
///   Kaggle's LOC_val_solution.csv: `ImageId,PredictionString`, then the image's name without its ending, a comma, its
///     WNID, and boxes, which are not looked at;
///   the devkit's ILSVRC2012_validation_ground_truth.txt: an ILSVRC2012_ID, from 1, for every image in the order of
///     their names. Line i of the file `synsets` is the WNID of ID i.
/// A WNID is one of `classes`. Folders in front of a FILE are left out. Returns [names] class indices. Throws DataError
/// naming file and line for anything else, for an image that is not there or has two lines; naming the file for an
/// image without a line; and telling how to make `synsets` where it is needed and empty.
std::vector<int64_t> read_imagenet_labels(const std::filesystem::path& file, const std::filesystem::path& synsets,
                                          const std::vector<std::string>& names,
                                          const std::vector<std::string>& classes);

}  // namespace settrain
