// Getting a data set to where its config looks for it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "src/data_tools/downloads.h"

namespace settrain {

/// $SETTRAIN_DATA, or "data": where the configs look.
std::filesystem::path default_data_folder();

/// `download` from elsewhere: `source` is the file's address or, of several files, that of the folder they are in;
/// `md5` is the file's, whose size is then taken as it comes. Either may be empty. Throws ConfigError for an MD5 of
/// several files, or one that is none.
Download with_source(Download download, const std::string& source, const std::string& md5);

/// The folder where it is complete already: below `to`, or else its usual place.
std::optional<std::filesystem::path> find_complete(const Download& download, const std::filesystem::path& to);

/// Downloads, checks and unpacks to a folder below `to`, which is made where it is missing. Gives the folder. An
/// archive that was downloaded is removed after it was unpacked; one that was there is kept.
///
/// Throws DataError: see download_file.h and unpack.h, where the folder holds something else, and for a data set that
/// cannot be fetched, saying what to get and where to put it; RunError where the folder cannot be written, or another
/// process fetches to it; Interrupted after a signal. The next call goes on.
std::filesystem::path fetch(const Download& download, const std::filesystem::path& to);

}  // namespace settrain
