#include "git_commit.h"
#include "src/train/provenance.h"

namespace settrain {

BuildInfo build_info() {
  return {SETTRAIN_VERSION, SETTRAIN_GIT_COMMIT, SETTRAIN_COMPILER, SETTRAIN_YAML_CPP, SETTRAIN_SPDLOG};
}

}  // namespace settrain
