// One file from the network, by curl.
#pragma once

#include <filesystem>
#include <string>

#include "datasets/download.h"
#include "src/core/files.h"

namespace settrain {

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
