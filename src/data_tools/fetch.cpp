#include "src/data_tools/fetch.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "src/core/child_process.h"
#include "src/core/error.h"
#include "src/core/interrupt.h"
#include "src/core/log.h"
#include "src/core/process.h"
#include "src/core/text.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;

std::string size_of(const RemoteFile& file) {
  if (file.size == 0) return "not known";
  return fmt::format("{} ({} bytes)", format_bytes(file.size), format_count(static_cast<int64_t>(file.size)));
}

// An empty folder, removed with all that is in it.
class WorkFolder {
 public:
  explicit WorkFolder(fs::path path) : path_(std::move(path)) {
    fs::remove_all(path_);
    fs::create_directories(path_);
  }
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;
  ~WorkFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// Unpacks `archive`, whose one folder has the name of `target`, to `target`: into a hidden folder beside it, which is
// renamed once it holds all the files `proof`. So `target` is there whole or not at all. Leftovers of a killed call are
// removed first. `target` must not exist or be empty. tar or unzip inherit `lock`.
//
// Throws DataError where there is no such program, where it fails, or where a file of `proof` is missing; the archive
// stays. Throws Interrupted after a signal.
void unpack(const fs::path& archive, Archive kind, const fs::path& target, const std::vector<std::string>& proof,
            const FileLock& lock) {
  const std::string name = target.filename().string();
  const fs::path parent = target.has_parent_path() ? target.parent_path() : ".";
  const WorkFolder work(parent / ("." + name + ".unpacking"));
  // Absolute, so that none of them is taken for an option.
  const std::string from = fs::absolute(archive).string(), to = fs::absolute(work.path()).string();
  const bool zip = kind == Archive::kZip;
  ChildProcess unpacker{zip ? std::vector<std::string>{"unzip", "-q", "-o", from, "-d", to}
                            : std::vector<std::string>{"tar", "--extract", "--gzip", "--no-same-owner", "--file", from,
                                                       "--directory", to},
                        zip ? "unzip" : "tar", throw_if_interrupted, lock.descriptor()};
  ChildEnd end;
  try {
    end = run_child(unpacker);
  } catch (const Error& problem) {
    throw DataError(fmt::format("cannot unpack '{}': {}", archive.string(), problem.what()));
  }
  throw_if_interrupted();
  const bool only_warned = zip && end.code == 1;  // unzip.1, DIAGNOSTICS
  if (end.code != 0 && !only_warned) {
    throw DataError(fmt::format("cannot unpack '{}': {} failed with exit code {}:\n{}", archive.string(),
                                unpacker.command.front(), end.code, end.printed));
  }
  for (const std::string& file : proof) {
    if (fs::exists(work.path() / name / file)) continue;
    throw DataError(
        fmt::format("'{}' holds no {}/{}: it is not the archive that was expected", archive.string(), name, file));
  }
  fs::rename(work.path() / name, target);
}

bool is_complete(const Download& download, const fs::path& folder) {
  return std::all_of(download.proof.begin(), download.proof.end(),
                     [&](const std::string& file) { return fs::exists(folder / file); });
}

void make_folder(const fs::path& folder) {
  std::error_code problem;
  fs::create_directories(folder, problem);
  if (problem) throw file_error("make the folder", folder, problem.value());
}

// Checks the room for the archive and its content before hours of download. The content is about as large as the
// archive, since photographs hardly compress.
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

// A data set without an archive: only whole files get into its folder.
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
  if (is_complete(download, folder)) return folder;  // another process fetched it meanwhile
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

// The MD5 that a user gave. Throws ConfigError unless it is 32 hexadecimal digits.
Checksum parse_md5(const std::string& text) {
  std::string hex = text;
  std::transform(hex.begin(), hex.end(), hex.begin(), [](unsigned char c) { return std::tolower(c); });
  if (hex.size() != 32 || hex.find_first_not_of("0123456789abcdef") != std::string::npos) {
    throw ConfigError(fmt::format("--md5: expected 32 hexadecimal digits, got '{}'", text));
  }
  return {Checksum::Kind::kMd5, hex};
}

}  // namespace

std::vector<Download> downloads(const DatasetRegistry& datasets) {
  std::vector<Download> all;
  for (const DatasetEntry& entry : datasets.entries()) {
    if (entry.download) all.push_back(*entry.download);
  }
  return all;
}

Download find_download(const DatasetRegistry& datasets, const std::string& name) {
  std::vector<std::string> names;
  for (const Download& download : downloads(datasets)) {
    if (download.name == name) return download;
    names.push_back(download.name);
  }
  throw ConfigError(fmt::format("data fetch: there is no data set '{}' to fetch{}; there are {}", name,
                                did_you_mean(name, names), fmt::join(names, ", ")));
}

std::string describe(const Download& download, const fs::path& to) {
  std::string text = fmt::format("{}\n  page      {}\n", download.name, download.page);
  for (const RemoteFile& file : download.files) {
    text += fmt::format("  source    {}\n  size      {}\n  checksum  {}\n", file.url, size_of(file),
                        file.checksum.known() ? checksum_text(file.checksum)
                                              : "not recorded here; the page has it, and --md5 takes it");
  }
  if (download.files.empty()) text += "  source    cannot be fetched: registration\n";
  return text + fmt::format("  licence   {}\n  goes to   {}\n", download.licence, (to / download.folder).string());
}

std::string config_line(const Download& download, const fs::path& folder) {
  return fmt::format("data: {{name: {}, root: \"{}\"}}", download.name, folder.string());
}

fs::path folder_of_variable(const char* variable, const char* usual) {
  const std::string folder = environment_variable(variable).value_or("");
  if (folder.empty()) return usual;
  if (const std::string hint = shell_hint(folder); !hint.empty()) {
    throw ConfigError(fmt::format("{} is '{}'{}", variable, folder, hint));
  }
  return folder;
}

Download with_source(Download download, const std::string& source, const std::string& md5) {
  if (download.files.empty()) return download;
  if (!md5.empty()) {
    if (download.files.size() != 1) {
      throw ConfigError(fmt::format("--md5: {} has {} files", download.name, download.files.size()));
    }
    const Checksum given = parse_md5(md5);
    // Another checksum than the recorded one means another file.
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
