// Pl@ntNet-300K: Garcin et al., "Pl@ntNet-300K: a plant image dataset with high label ambiguity and a long-tailed
// distribution" (NeurIPS Datasets and Benchmarks 2021).
#pragma once

#include <cstdint>
#include <string>

#include "datasets/dataset.h"
#include "datasets/image_files.h"
#include "datasets/registry.h"
#include "src/config/key.h"

namespace settrain {

struct Plantnet300kOptions {
  std::string root, names;
  // What must be there; kAny: not checked.
  int64_t classes = 0, genera = 0, train = 0, val = 0, test = 0;

  static constexpr int64_t kAny = -1;

  static config::Keys keys();
};

/// The images below root/images_SPLIT/ID, root/images/SPLIT/ID or root/SPLIT/ID, whichever is there, for the splits
/// train, val and test. The classes are the folders of train, in the order of class_idx_to_species_id.json where that
/// is there, else of their names; they are named by the file `names`, and the first word of a name, the genus, is the
/// superclass. Without that file they are named by their folders and have no superclass. A sample's id is its place
/// among all files: train, val and test, class by class, in the order of their paths.
///
/// Throws DataError: one that says all that is missing or differs from the expected sizes, and of which files of
/// plantnet300K_metadata.json, where that is there; or one that names a JSON file and what is wrong with it.
Dataset load_plantnet300k(const Plantnet300kOptions& options, const ImageFileOptions& image_options);

DatasetEntry plantnet300k_entry();

}  // namespace settrain
