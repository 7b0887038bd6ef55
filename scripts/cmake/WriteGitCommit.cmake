# Run by GitCommit.cmake with SOURCE, the root of the source tree, and HEADER, the file to write.
execute_process(COMMAND git -C "${SOURCE}" rev-parse --show-toplevel HEAD
                OUTPUT_VARIABLE answer RESULT_VARIABLE failed ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
set(commit unknown)
# A copy of the source below somebody else's repository must not claim that one's commit.
file(REAL_PATH "${SOURCE}" source)
if(NOT failed AND answer MATCHES "^(.+)\n([0-9a-f]+)$" AND CMAKE_MATCH_1 STREQUAL source)
  set(commit "${CMAKE_MATCH_2}")
  execute_process(COMMAND git -C "${SOURCE}" status --porcelain --untracked-files=no OUTPUT_VARIABLE changes)
  if(changes)
    string(APPEND commit "-dirty")
  endif()
endif()
file(CONFIGURE OUTPUT "${HEADER}" CONTENT "#define SETTRAIN_GIT_COMMIT \"${commit}\"\n" @ONLY)
