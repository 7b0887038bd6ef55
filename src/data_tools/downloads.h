// The data sets that settrain knows where to get.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "src/data_tools/download_file.h"
#include "src/data_tools/unpack.h"

namespace settrain {

/// Where a data set comes from, and what it becomes.
struct Download {
  std::string name;               // as `settrain data fetch` takes it
  std::string page;               // for people
  std::string licence;            // in a few words
  std::vector<RemoteFile> files;  // none: it cannot be fetched, and `by_hand` says what to do
  Archive archive = Archive::kNone;
  std::string folder;              // that it becomes, below the folder of all data
  std::vector<std::string> proof;  // files of that folder that are there once all is
  std::string usual_place;         // a folder outside where it may be installed; may be empty
  std::string config;              // what a config says to use it; {} stands for its folder
  std::string by_hand;             // what to get and where to put it; {} stands for its folder
};

/// All of them, in the order of their names as a page shows them.
const std::vector<Download>& downloads();

/// The one of that name. Throws ConfigError naming the nearest, and all, where there is none.
const Download& find_download(const std::string& name);

/// Lines for people: source, size, checksum, licence, and the folder below `to` that it goes to.
std::string describe(const Download& download, const std::filesystem::path& to);

}  // namespace settrain
