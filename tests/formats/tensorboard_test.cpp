#include "src/formats/tensorboard.h"

#include <cstring>
#include <string>

#include "tests/support/catch2.h"
#include "tests/support/read_file.h"
#include "tests/support/temporary_folder.h"

using namespace settrain;
using test::read_file;

namespace {

template <class T>
T number_at(const std::string& bytes, size_t place) {
  T value;
  REQUIRE(place + sizeof value <= bytes.size());
  std::memcpy(&value, bytes.data() + place, sizeof value);
  return value;
}

uint32_t unmask(uint32_t masked) {
  const uint32_t rotated = masked - 0xA282EAD8;
  return rotated >> 17 | rotated << 15;
}

// The messages of a file; checks every length and checksum.
std::vector<std::string> messages_of(const std::string& file) {
  std::vector<std::string> messages;
  for (size_t place = 0; place < file.size();) {
    const auto length = number_at<uint64_t>(file, place);
    CHECK(unmask(number_at<uint32_t>(file, place + 8)) == crc32c(file.substr(place, 8)));
    messages.push_back(file.substr(place + 12, length));
    CHECK(unmask(number_at<uint32_t>(file, place + 12 + length)) == crc32c(messages.back()));
    place += 16 + length;
  }
  return messages;
}

}  // namespace

TEST_CASE("Records hold the messages of an event file, byte for byte") {
  const test::TemporaryFolder folder;
  TensorboardWriter writer(folder / "e");
  writer.add_scalars(300, {{"a/b", 1.5}, {"c", -2}});
  const std::vector<std::string> messages = messages_of(read_file(folder / "e"));
  REQUIRE(messages.size() == 2);
  // Field 1, a double: the wall time.
  CHECK(messages[0][0] == '\x09');
  CHECK(number_at<double>(messages[0], 1) > 1.7e9);
  CHECK(messages[0].substr(9) ==
        "\x1A\x0D"
        "brain.Event:2");
  // Field 2, step 300 = 0b10'0101100; field 5, a summary of 12 + 10 bytes in two values.
  const std::string expected = std::string("\x10\xAC\x02\x2A\x16") +
                               std::string(
                                   "\x0A\x0A\x0A\x03"
                                   "a/b\x15\0\0\xC0\x3F",
                                   12) +
                               std::string(
                                   "\x0A\x08\x0A\x01"
                                   "c\x15\0\0\0\xC0",
                                   10);
  CHECK(messages[1].substr(9) == expected);
}

TEST_CASE("A writer goes on at the end of its file, and can be cut back") {
  const test::TemporaryFolder folder;
  uint64_t offset = 0;
  {
    TensorboardWriter writer(folder / "e");
    writer.add_scalars(1, {{"a", 1}});
    offset = writer.offset();
    CHECK(offset == read_file(folder / "e").size());
  }
  TensorboardWriter writer(folder / "e");
  writer.add_scalars(2, {{"a", 2}});
  CHECK(messages_of(read_file(folder / "e")).size() == 3);
  writer.truncate_to(offset);
  writer.add_scalars(3, {{"a", 3}});
  CHECK(messages_of(read_file(folder / "e")).size() == 3);
}

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
