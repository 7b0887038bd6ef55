// Getting a data set to where its config looks for it.
// One file from the network, by curl.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "datasets/download.h"
#include "datasets/registry.h"
#include "src/core/files.h"

namespace settrain {

/// The downloads of the data sets that have one.
std::vector<Download> downloads(const DatasetRegistry& datasets);

/// The download of that name. Throws ConfigError with the nearest name and all names where there is none.
Download find_download(const DatasetRegistry& datasets, const std::string& name);

/// Lines for people: source, size, checksum, licence, and the folder below `to` that it goes to.
std::string describe(const Download& download, const std::filesystem::path& to);

/// The line of a config that uses it from that folder.
std::string config_line(const Download& download, const std::filesystem::path& folder);

/// The folder that an environment variable names ($SETTRAIN_DATA), or the usual one, where configs look. Throws
/// ConfigError where the text is what a shell would have replaced.
std::filesystem::path folder_of_variable(const char* variable, const char* usual);

/// `download` from another address: `source` is the file's address or, for several files, that of their folder. `md5`
/// is the file's checksum; where it is not the recorded one, any size is accepted. Either may be empty. Throws
/// ConfigError for an MD5 of several files, or one that is none.
Download with_source(Download download, const std::string& source, const std::string& md5);

/// The folder where the data set is complete already: below `to`, or else its usual place.
std::optional<std::filesystem::path> find_complete(const Download& download, const std::filesystem::path& to);

/// Downloads, checks and unpacks to a folder below `to`, which is created where it is missing. Returns the folder. A
/// downloaded archive is removed after it was unpacked; an archive that was there before is kept.
///
/// Throws DataError where download_file() does, where tar or unzip is missing or fails, where the archive lacks a file,
/// where the folder holds something else, and for a data set that cannot be fetched, with what to get and where to put
/// it; RunError where the folder cannot be written, or another process fetches to it; Interrupted after a signal. The
/// next call resumes.
std::filesystem::path fetch(const Download& download, const std::filesystem::path& to);

/// "MD5 03b5dce0..."; "none" where it is not known.
std::string checksum_text(const Checksum& checksum);

/// Downloads to `folder`/NAME.part, resumes after the bytes that are there, checks size and checksum, renames the file
/// to NAME and returns that path. A file NAME that is there already, put there by hand, is checked and used. curl
/// inherits `lock`, so a curl that outlives this program keeps other processes away.
///
/// A broken connection is resumed as long as bytes come. Throws Interrupted after a signal; the part stays. Throws
/// DataError, with the address and where to put the file by hand, where there is no curl, no network, no such file, or
/// no room. A download with a wrong size or checksum is renamed to NAME.wrong, since it may be large and worth a look;
/// a wrong NAME stays as it is. Both are DataErrors that say what was expected and what came.
std::filesystem::path download_file(const RemoteFile& file, const std::filesystem::path& folder, const FileLock& lock);

}  // namespace settrain
