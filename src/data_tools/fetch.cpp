#include "src/data_tools/fetch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "src/core/error.h"
#include "src/core/file_lock.h"
#include "src/core/human.h"
#include "src/core/log.h"
#include "src/data_tools/checksum.h"
#include "src/data_tools/download_file.h"
#include "src/data_tools/unpack.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;

bool is_complete(const Download& download, const fs::path& folder) {
  return std::all_of(download.proof.begin(), download.proof.end(),
                     [&](const std::string& file) { return fs::exists(folder / file); });
}

void make_folder(const fs::path& folder) {
  std::error_code problem;
  fs::create_directories(folder, problem);
  if (problem) throw file_error("make the folder", folder, problem.value());
}

// What is unpacked is about as large as the archive, since photographs hardly get smaller. Better told now than after
// hours.
void check_room(const RemoteFile& file, const fs::path& to) {
  std::error_code missing;
  uint64_t here = 0;
  for (const char* ending : {"", ".part"}) {
    const uint64_t size = fs::file_size((to / file.name).concat(ending), missing);
    if (!missing) here = std::max(here, size);
  }
  const uint64_t free = fs::space(to).available, needed = 2 * file.size - std::min(here, file.size);
  if (free >= needed) return;
  throw DataError(
      fmt::format("about {} are needed for {} and what it unpacks to, but '{}' has room for {} only: free "
                  "some, or choose another folder (--to)",
                  format_bytes(needed), file.name, to.string(), format_bytes(free)));
}

// Only whole files come into the folder of a data set without an archive.
fs::path fetch_files(const Download& download, const fs::path& folder) {
  make_folder(folder);
  const FileLock lock(folder / ".settrain-fetch");
  for (const RemoteFile& file : download.files) download_file(file, folder, lock);
  return folder;
}

fs::path fetch_archive(const Download& download, const fs::path& to) {
  const fs::path folder = to / download.folder;
  const RemoteFile& file = download.files.at(0);
  make_folder(to);
  const FileLock lock(to / (".settrain-fetch-" + download.name));
  if (is_complete(download, folder)) return folder;  // another process was at it
  if (fs::exists(folder) && !fs::is_empty(folder)) {
    throw DataError(fmt::format("'{}' is there, but holds no {}: move it away, or choose another folder (--to)",
                                folder.string(), download.proof.at(0)));
  }
  check_room(file, to);
  const bool was_there = fs::exists(to / file.name);
  const fs::path archive = download_file(file, to, lock);
  log::info(fmt::format("[fetch] unpacking '{}'", archive.string()));
  unpack(archive, download.archive, folder, download.proof, lock);
  if (!was_there) fs::remove(archive);
  return folder;
}

}  // namespace

fs::path default_data_folder() {
  const char* folder = std::getenv("SETTRAIN_DATA");
  return folder && *folder ? folder : "data";
}

Download with_source(Download download, const std::string& source, const std::string& md5) {
  if (download.files.empty()) return download;
  if (!md5.empty()) {
    if (download.files.size() != 1) {
      throw ConfigError(fmt::format("--md5: {} has {} files", download.name, download.files.size()));
    }
    const Checksum given = parse_md5(md5);
    // Another checksum than the recorded one is another file.
    if (download.files[0].checksum.known() && given.hex != download.files[0].checksum.hex) download.files[0].size = 0;
    download.files[0].checksum = given;
  }
  if (source.empty()) return download;
  for (RemoteFile& file : download.files) {
    file.url = download.files.size() == 1 ? source : source + (source.ends_with('/') ? "" : "/") + file.name;
  }
  return download;
}

std::optional<fs::path> find_complete(const Download& download, const fs::path& to) {
  for (const fs::path& folder : {to / download.folder, fs::path(download.usual_place)}) {
    if (!folder.empty() && is_complete(download, folder)) return folder;
  }
  return std::nullopt;
}

fs::path fetch(const Download& download, const fs::path& to) {
  if (download.files.empty()) {
    const fs::path folder = to / download.folder;
    std::string text = download.by_hand;
    for (size_t at; (at = text.find("{}")) != std::string::npos;) text.replace(at, 2, folder.string());
    throw DataError(fmt::format(
        "{} cannot be fetched, since its images are given to registered users only\n{}Then a config uses them by\n  {}",
        download.name, text, config_line(download, folder)));
  }
  try {
    return download.archive == Archive::kNone ? fetch_files(download, to / download.folder)
                                              : fetch_archive(download, to);
  } catch (const fs::filesystem_error& problem) {
    throw RunError(fmt::format("cannot fetch {}: {}", download.name, problem.what()));
  }
}

}  // namespace settrain
