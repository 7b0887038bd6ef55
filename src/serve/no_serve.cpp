// Takes the place of all other files here in a build with SETTRAIN_SERVE=OFF.
#include "src/core/error.h"
#include "src/serve/serve.h"

namespace settrain {

class ListeningSocket {};

Server::Server(const ServeOptions& /*options*/) {
  throw Error("this build of settrain has no server (CMake option SETTRAIN_SERVE=OFF)");
}

Server::~Server() = default;

void Server::run(const TrainedModel& /*model*/, const SetMaker& /*maker*/, const std::vector<OfferedPlace>& /*places*/,
                 const std::function<void(int port)>& /*ready*/, const std::function<bool()>& /*stop*/) {}

}  // namespace settrain
