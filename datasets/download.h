// Where a data set comes from. `settrain data fetch` carries it out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace settrain {

/// A published checksum.
struct Checksum {
  enum class Kind { kNone, kMd5, kSha256 };
  Kind kind = Kind::kNone;
  std::string hex{};  // lower case

  bool known() const { return kind != Kind::kNone; }
};

/// A file somewhere else.
struct RemoteFile {
  std::string name;   // of the file here
  std::string url;    // https://, http:// or file://
  uint64_t size = 0;  // bytes; 0: not known
  Checksum checksum{};
};

enum class Archive { kNone, kTarGz, kZip };

/// Where a data set comes from, and what it becomes.
struct Download {
  std::string name;                 // the data set's
  std::string page;                 // for people
  std::string licence;              // in a few words
  std::vector<RemoteFile> files{};  // none: it cannot be fetched, and `by_hand` says what to do
  Archive archive = Archive::kNone;
  std::string folder{};              // that it becomes, below the folder of all data
  std::vector<std::string> proof{};  // files of that folder that are there once all is
  std::string usual_place{};         // a folder outside where it may be installed; may be empty
  std::string by_hand{};             // what to get and where to put it; {} stands for its folder
};

}  // namespace settrain
