// The data sets that settrain knows where to get.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "datasets/registry.h"

namespace settrain {

/// Those that say where they come from.
std::vector<Download> downloads(const DatasetRegistry& datasets);

/// The one of that name. Throws ConfigError naming the nearest, and all, where there is none.
Download find_download(const DatasetRegistry& datasets, const std::string& name);

/// Lines for people: source, size, checksum, licence, and the folder below `to` that it goes to.
std::string describe(const Download& download, const std::filesystem::path& to);

/// The line of a config that uses it from that folder.
std::string config_line(const Download& download, const std::filesystem::path& folder);

}  // namespace settrain
