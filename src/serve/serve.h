// A trained model behind a server: `settrain serve`.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/inference/set_maker.h"
#include "src/inference/trained_model.h"
#include "src/serve/http/limits.h"

namespace settrain {

struct BatchOptions {
  int64_t most_images = 16;   // in a batch
  double window_ms = 2;       // how long the first image of a batch waits for others that are on their way
  int64_t most_waiting = 64;  // images in the queue
  double seconds = 20;        // from a request's arrival until the model is reached
};

struct ServeOptions {
  std::string host = "127.0.0.1";
  int port = 8080;             // 0: any free one
  bool by_superclass = false;  // the sets hold superclasses
  HttpLimits http = {};
  BatchOptions batch = {};
  int64_t most_pixels = 50'000'000;       // of an image
  std::vector<std::string> origins = {};  // of pages that may read the answers; "*": all
};

/// Sets for a place that a request may name, as prior=NAME or only=NAME.
struct OfferedPlace {
  std::string kind;  // "prior" or "only"
  std::string name;  // is_place_name()
  SetMaker maker;
};

class ListeningSocket;

class Server {
 public:
  /// Binds the address. Throws ConfigError for an origin that no browser sends, Error where binding fails, and in a
  /// build without the server (CMake: SETTRAIN_SERVE=OFF).
  explicit Server(const ServeOptions& options);
  ~Server();

  /// Answers requests with the maker's sets, or with those of the place that a request names, until `stop` returns
  /// true; threads call it several times a second. Requests that had begun are then still answered. Calls `ready` with
  /// the port when it listens. Throws what the model throws.
  void run(const TrainedModel& model, const SetMaker& maker, const std::vector<OfferedPlace>& places,
           const std::function<void(int port)>& ready, const std::function<bool()>& stop);

 private:
  ServeOptions options_;
  std::unique_ptr<ListeningSocket> socket_;
};

}  // namespace settrain
