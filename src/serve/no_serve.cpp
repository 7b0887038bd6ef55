// In place of all else in a build with SETTRAIN_SERVE=OFF.
#include "src/core/error.h"
#include "src/serve/serve.h"

namespace settrain {

void serve(const TrainedModel& /*model*/, const SetMaker& /*maker*/, const ServeOptions& /*options*/,
           const std::function<void(int port)>& /*ready*/, const std::function<bool()>& /*stop*/) {
  throw Error("this build of settrain has no server (CMake option SETTRAIN_SERVE=OFF)");
}

}  // namespace settrain
