# The target settrain_git_commit writes git_commit.h into the folder ${settrain_generated}: SETTRAIN_GIT_COMMIT is a string
# literal, the source's commit, with "-dirty" behind it where tracked files differ, or "unknown" outside a git clone. It is looked
# up in every build, in milliseconds; the header is rewritten, and what includes it recompiled, only where the answer changed.

set(settrain_generated "${CMAKE_BINARY_DIR}/generated")
add_custom_target(settrain_git_commit
  COMMAND "${CMAKE_COMMAND}" -D "SOURCE=${CMAKE_SOURCE_DIR}" -D "HEADER=${settrain_generated}/git_commit.h"
          -P "${CMAKE_CURRENT_LIST_DIR}/WriteGitCommit.cmake"
  BYPRODUCTS "${settrain_generated}/git_commit.h"
  COMMENT "Looking up the source's commit"
  VERBATIM)
