// Which settrain this is, and what it was built with.
#pragma once

namespace settrain {

struct BuildInfo {
  const char* version;     // "0.1.0"
  const char* git_commit;  // of the source, "-dirty" behind it where tracked files differed; "unknown" outside a clone
  const char* compiler;    // "GNU 12.2.0"
  const char* yaml_cpp;    // versions of the libraries that cannot be asked for theirs
  const char* spdlog;
};

/// Of this program.
BuildInfo build_info();

}  // namespace settrain
