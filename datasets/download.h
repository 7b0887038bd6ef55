// The source of a data set, for `settrain data fetch`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace settrain {

/// A published checksum.
struct Checksum {
  enum class Kind { kNone, kMd5, kSha256 };
  Kind kind = Kind::kNone;
  std::string hex{};  // lower case; the first digits suffice

  bool known() const { return kind != Kind::kNone; }
};

/// A file on another host.
struct RemoteFile {
  std::string name;   // of the local file
  std::string url;    // https://, http:// or file://
  uint64_t size = 0;  // bytes; 0: unknown
  Checksum checksum{};
};

enum class Archive { kNone, kTarGz, kZip };

/// The files of a data set, and the folder that they become.
struct Download {
  std::string name;                 // of the data set
  std::string page;                 // for people
  std::string licence;              // in a few words
  std::vector<RemoteFile> files{};  // empty: it cannot be fetched, and `by_hand` says what to do
  Archive archive = Archive::kNone;
  std::string folder{};              // the result, below the folder of all data
  std::vector<std::string> proof{};  // files of that folder, which exist once it is complete
  std::string usual_place{};         // another folder where it may be installed; may be empty
  std::string by_hand{};             // instructions; {} stands for the data set's folder
};

}  // namespace settrain
