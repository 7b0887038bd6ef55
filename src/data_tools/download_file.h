// One file from the network, by curl.
#pragma once

#include <filesystem>

#include "datasets/download.h"
#include "src/core/file_lock.h"

namespace settrain {

/// Downloads to `folder`/NAME.part, going on with what is there, checks size and checksum, renames it to NAME and gives
/// that path. A file NAME that is there already, put there by hand, is checked and taken. curl holds `lock` as well, so
/// that one that outlives this program keeps others away.
///
/// A connection that breaks is taken up again as long as bytes come. Throws Interrupted after a signal; the part stays.
/// Throws DataError that repeats the address and says where to put the file by hand: where there is no curl, no
/// network, no such file, or no room. A download with another size or checksum becomes NAME.wrong, since it may be
/// large and worth a look; a wrong NAME stays as it is; both are DataErrors with what was got and expected.
std::filesystem::path download_file(const RemoteFile& file, const std::filesystem::path& folder, const FileLock& lock);

}  // namespace settrain
