// What clients may ask of the server.
#pragma once

#include <cstdint>

namespace settrain {

struct HttpLimits {
  int64_t bytes = int64_t{32} << 20;  // of a request's body
  int64_t images = 16;                // photographs of one specimen
  int64_t connections = 64;           // at a time
  double seconds = 20;                // for a request to arrive, and for an answer to be taken
  double idle_seconds = 5;            // of a connection between two requests
};

/// Bodies that may lie in memory at a time, in bodies of the largest size.
inline constexpr int64_t kBodiesInMemory = 8;

/// Of a request's first line, and of each of its headers.
inline constexpr int64_t kLongestLine = 8192;
/// Of all of them together.
inline constexpr int64_t kLongestHead = 65536;

}  // namespace settrain
