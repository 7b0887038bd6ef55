// Which settrain this is.
#pragma once

namespace settrain {

struct BuildInfo {
  const char* version;  // "0.1.0"
  const char*
      git_commit;  // of the source, "-dirty" behind it where tracked files differed; "unknown" outside a git clone
};

/// Of this program.
BuildInfo build_info();

}  // namespace settrain
