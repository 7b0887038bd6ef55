#include "src/formats/crc32c.h"

#include <string>

#include "tests/support/catch2.h"

using settrain::crc32c;

TEST_CASE("Known answers of RFC 3720, appendix B.4") {
  std::string rising, falling;
  for (char byte = 0; byte < 32; ++byte) {
    rising += byte;
    falling.insert(0, 1, byte);
  }
  CHECK(crc32c(std::string(32, '\0')) == 0x8A9136AA);
  CHECK(crc32c(std::string(32, '\xFF')) == 0x62A8AB43);
  CHECK(crc32c(rising) == 0x46DD794E);
  CHECK(crc32c(falling) == 0x113FDB5C);
  CHECK(crc32c("123456789") == 0xE3069283);
  CHECK(crc32c("") == 0);
}
