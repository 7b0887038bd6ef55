#include "src/core/human.h"

#include <limits>

#include "tests/support/catch2.h"

using namespace settrain;

TEST_CASE("Durations") {
  CHECK(format_duration(0) == "0s");
  CHECK(format_duration(0.6) == "1s");
  CHECK(format_duration(59.4) == "59s");
  CHECK(format_duration(59.6) == "1m 00s");
  CHECK(format_duration(3599.6) == "1h 00m 00s");
  CHECK(format_duration(3725) == "1h 02m 05s");
  CHECK(format_duration(2 * 86400 + 3 * 3600 + 4 * 60 + 5) == "2d 03h 04m");
  CHECK(format_duration(-1) == "?");
  CHECK(format_duration(1e300) == "?");
  CHECK(format_duration(std::numeric_limits<double>::quiet_NaN()) == "?");
}

TEST_CASE("Counts") {
  CHECK(format_count(0) == "0");
  CHECK(format_count(999) == "999");
  CHECK(format_count(1000) == "1,000");
  CHECK(format_count(1234567) == "1,234,567");
  CHECK(format_count(-123) == "-123");
  CHECK(format_count(-123456) == "-123,456");
}

TEST_CASE("Bytes") {
  CHECK(format_bytes(0) == "0 B");
  CHECK(format_bytes(1023) == "1023 B");
  CHECK(format_bytes(1024) == "1.0 KiB");
  CHECK(format_bytes(1536) == "1.5 KiB");
  CHECK(format_bytes(1024 * 1024 - 1) == "1.0 MiB");
  CHECK(format_bytes(uint64_t{25} << 30) == "25.0 GiB");
  CHECK(format_bytes(std::numeric_limits<uint64_t>::max()) == "16.0 EiB");
}
