#include "src/data_tools/unpack.h"

#include <fmt/format.h>

#include <utility>

#include "src/core/child_process.h"
#include "src/core/error.h"
#include "src/core/interrupt.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;

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

}  // namespace

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

}  // namespace settrain
