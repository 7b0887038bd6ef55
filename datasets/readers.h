// Readers of the files that published data sets come in. Each stands beside its data set, and the tests and fuzz
// targets call it on files of their own.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "datasets/file_table.h"
#include "datasets/image_list.h"
#include "datasets/registry.h"

namespace settrain {

// cifar100.cpp: the official names, and records of a coarse label, a fine label and 3,072 bytes of pixels.

struct Cifar100Names {
  std::vector<std::string> coarse;  // [20] alphabetical, which is the order of the coarse labels
  std::vector<std::string> fine;    // [100] alphabetical, which is the order of the fine labels
  std::vector<int64_t> coarse_of;   // [100] the superclass of every class
};

const Cifar100Names& cifar100_names();

struct Cifar100File {
  std::vector<uint8_t> coarse;  // [records] in [0, 20)
  std::vector<uint8_t> fine;    // [records] in [0, 100)
  std::vector<uint8_t> pixels;  // [records, 32, 32, 3]: the file's red, green and blue planes interleaved
  std::string sha256;           // of the file
};

/// Throws DataError, naming the file, where it cannot be read, does not have the size of `records` records, or has a
/// label out of range.
Cifar100File read_cifar100_file(const std::filesystem::path& file, int64_t records);

// fashion_mnist.cpp: the IDX format of the MNIST family (http://yann.lecun.com/exdb/mnist), plain or compressed by
// gzip.

/// An array of bytes, the last dimension contiguous.
struct IdxArray {
  std::vector<int64_t> sizes;
  std::vector<uint8_t> values;
  std::string sha256;  // of the uncompressed file, header included
};

/// Reads a file of unsigned bytes with `rank` dimensions. Throws DataError, naming the file, where it cannot be opened,
/// is no IDX file of that type and rank, is shorter or longer than its header says, is corrupt (by gzip's checksum
/// too), or declares more than `max_values` values. It allocates memory for the bytes that the file really has,
/// whatever the header declares.
IdxArray read_idx(const std::filesystem::path& file, int rank, int64_t max_values = int64_t{1} << 30);

// imagenet.cpp: the labels of the validation images, which come in one folder.

/// Reads the labels of the images `names`, which are sorted. The first line of the file tells its form:
///   `FILE WNID` or `FILE INDEX`, a blank between them; an index counts `classes` from 0;
///   Kaggle's LOC_val_solution.csv: `ImageId,PredictionString`, then the image's name without its ending, a comma, its
///     WNID, and boxes, which are ignored;
///   the devkit's ILSVRC2012_validation_ground_truth.txt: an ILSVRC2012_ID, from 1, for every image in the order of
///     their names. Line i of the file `synsets` is the WNID of ID i.
/// A WNID is one of `classes`. Folders in front of a FILE are ignored. Returns [names] class indices. Throws DataError
/// naming file and line for any other form, for an unknown image and for an image with two lines; naming the file for
/// an image without a line. Throws KeyError that tells how to make `synsets` where it is needed and empty.
std::vector<int64_t> read_imagenet_labels(const std::filesystem::path& file, const std::filesystem::path& synsets,
                                          const std::vector<std::string>& names,
                                          const std::vector<std::string>& classes);

// plantnet300k.cpp: its JSON files.

/// Reads class_idx_to_species_id.json, {"0": "1355868", ...}: the ids of the classes, in their order. Throws DataError
/// naming the file where it is no JSON, or no object of all indices from 0 and distinct ids.
std::vector<std::string> read_class_order(const std::filesystem::path& file);

/// Reads plantnet300K_species_id_2_name.json, {"1355868": "Lactuca virosa L.", ...}: names by id. Throws DataError
/// naming the file where it is no JSON, or no object of texts that are not empty.
std::unordered_map<std::string, std::string> read_species_names(const std::filesystem::path& file);

/// Reads plantnet300K_metadata.json of version 1.1, {"image id": {"species_id": "1355868", "split": "train", "obs_id":
/// "1008726402", "organ": "flower", "author": "...", "license": "cc-by-sa"}, ...}, one image at a time, and gives each
/// to `take`. All but the first two may be missing. Throws DataError naming the file, and the image or the line, where
/// it is no JSON, or not of this form.
void read_image_records(const std::filesystem::path& file, const std::function<void(ImageRecord&&)>& take);

/// The files that the metadata list for a split, and those of them that are missing.
struct MissingFiles {
  int64_t listed = 0, missing = 0;
  std::string first;  // the first missing file, relative to the root of the data
};

/// Looks for folders[split]/SPECIES/IMAGE.jpg of every record of the file among `files`; splits in the order train,
/// val, test. Throws DataError where read_image_records() does.
std::array<MissingFiles, 3> find_missing_files(const std::filesystem::path& file,
                                               const std::array<std::string, 3>& folders, const FileTable& files);

// file_list.cpp

/// The name of the folder of the training images of every class, [num_classes]; empty where a class' images lie in
/// several folders, a folder has several classes, or a class has no image.
std::vector<std::string> folders_of_classes(const ImageList& train, const FileTable& files, int64_t num_classes);

}  // namespace settrain
