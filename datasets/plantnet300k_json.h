// The JSON files of Pl@ntNet-300K.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <unordered_map>
#include <vector>

#include "datasets/file_table.h"

namespace settrain {

/// Reads class_idx_to_species_id.json, {"0": "1355868", ...}: the ids of the classes, in their order. Throws DataError
/// naming the file where it is no JSON, or no object of all indices from 0 and ids that differ.
std::vector<std::string> read_class_order(const std::filesystem::path& file);

/// Reads plantnet300K_species_id_2_name.json, {"1355868": "Lactuca virosa L.", ...}: names by id. Throws DataError
/// naming the file where it is no JSON, or no object of texts that are not empty.
std::unordered_map<std::string, std::string> read_species_names(const std::filesystem::path& file);

/// What a split should hold by the metadata, and does not.
struct MissingFiles {
  int64_t listed = 0, missing = 0;
  std::string first;  // of those that are missing, its path from the root of the data
};

/// Reads plantnet300K_metadata.json of version 1.1, {"image id": {"species_id": "1355868", "split": "train", ...},
/// ...}, one image at a time, and looks for folders[split]/SPECIES/IMAGE.jpg among `files`; splits in the order train,
/// val, test. Throws DataError naming the file where it is no JSON, or not of this form.
std::array<MissingFiles, 3> find_missing_files(const std::filesystem::path& file,
                                               const std::array<std::string, 3>& folders, const FileTable& files);

}  // namespace settrain
