// Files that are damaged or made to harm: an error that names what is wrong, never a crash.
#include <ATen/ATen.h>

#include <cstring>
#include <random>

#include "src/checkpoint/tensor_file.h"
#include "src/core/error.h"
#include "src/formats/safetensors.h"
#include "tests/support/catch2.h"
#include "tests/support/read_file.h"
#include "tests/support/temporary_folder.h"

using namespace settrain;
using Catch::Contains;

namespace {

void check_refused(const std::string& json, uint64_t data_size, const std::string& reason) {
  INFO(json);
  CHECK_THROWS_WITH(decode_safetensors_header(json, data_size, "'file'"), Contains("'file'") && Contains(reason));
  CHECK_THROWS_AS(decode_safetensors_header(json, data_size, "'file'"), RunError);
}

std::string entry(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}

// Reads what may be damaged: true if it is accepted. Anything but RunError fails the test.
bool is_readable(const std::filesystem::path& file) {
  try {
    read_safetensors(file);
    return true;
  } catch (const RunError& error) {
    CHECK_THAT(error.what(), Contains(file.string()));
    return false;
  }
}

// Random changes, the same in every run.
class Damage {
 public:
  // `text` with one to three places changed.
  std::string applied_to(std::string text) {
    for (size_t changes = 1 + below(3); changes > 0 && !text.empty(); --changes) {
      const size_t place = below(text.size());
      switch (below(4)) {
        case 0:
          text[place] = static_cast<char>(below(256));
          break;
        case 1:
          text.erase(place, 1 + below(4));
          break;
        case 2:
          text.insert(place, 1, "0123456789{}[]\",:"[below(17)]);
          break;
        default:
          text.insert(place, text.substr(below(text.size()), below(20)));
      }
    }
    return text;
  }

 private:
  size_t below(size_t bound) { return random_() % bound; }

  std::mt19937 random_{1};
};

}  // namespace

TEST_CASE("A valid header is taken, in any order and with any spaces") {
  const std::string json = R"({ "b" : {"shape":[2,1],"data_offsets":[4,8],"dtype":"F16"}, "__metadata__":{"k":"v"},
                               "a":{"dtype":"I8","shape":[4],"data_offsets":[0,4]}, "e":)" +
                           entry("F64", "[0]", "[4,4]") + "}   ";
  const SafetensorsHeader header = decode_safetensors_header(json, 8, "'file'");
  REQUIRE(header.entries.size() == 3);
  CHECK(header.entries[0].name == "a");
  CHECK(header.entries[1].name == "e");
  CHECK(header.entries[2].name == "b");
  CHECK(header.entries[2].shape == std::vector<int64_t>{2, 1});
  CHECK(header.metadata == TextMap{{"k", "v"}});
}

TEST_CASE("Headers that are not what they should be are refused with the reason") {
  check_refused("", 0, "does not start with '{'");
  check_refused(" {}", 0, "does not start with '{'");
  check_refused("[]", 0, "does not start with '{'");
  check_refused("{", 0, "not valid JSON");
  check_refused("{}x", 0, "not valid JSON");
  check_refused("{\"\xFF\":1}", 0, "not valid JSON");
  check_refused(R"({"a":1})", 0, "tensor \"a\": expected the keys dtype, shape and data_offsets");
  check_refused(R"({"a":{"dtype":"F32","shape":[1]}})", 4, "expected the keys");
  check_refused(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"more":1}})", 4, "no others");
  check_refused(R"({"__metadata__":[]})", 0, "__metadata__ is not a map");
  check_refused(R"({"__metadata__":{"k":1}})", 0, "__metadata__ \"k\" is not a text");
  check_refused(R"({"a":{"dtype":1,"shape":[1],"data_offsets":[0,4]}})", 4, "not a text");
  check_refused("{\"a\":" + entry("F8_E4M3", "[1]", "[0,1]") + "}", 1, "its dtype is \"F8_E4M3\"");
}

TEST_CASE("Shapes and offsets are checked against each other and the data") {
  check_refused("{\"a\":" + entry("F32", "[2]", "[0,4]") + "}", 4, "take 8 bytes, its data_offsets 4");
  check_refused("{\"a\":" + entry("F32", "[1]", "[0,8]") + "}", 4, "not a range within the 4 bytes");
  check_refused("{\"a\":" + entry("F32", "[1]", "[4,0]") + "}", 4, "not a range");
  check_refused("{\"a\":" + entry("F32", "[1]", "[0]") + "}", 4, "not a range");
  check_refused("{\"a\":" + entry("F32", "[1]", "[0,4,4]") + "}", 4, "not a range");
  check_refused("{\"a\":" + entry("F32", "[-1]", "[0,4]") + "}", 4, "not an integer from 0");
  check_refused("{\"a\":" + entry("F32", "[1.0]", "[0,4]") + "}", 4, "not an integer from 0");
  check_refused("{\"a\":" + entry("F32", "1", "[0,4]") + "}", 4, "its shape is not a list");
  check_refused("{\"a\":" + entry("F32", "[9223372036854775808]", "[0,4]") + "}", 4,
                "not an integer from 0 to 2^63 - 1");
  check_refused("{\"a\":" + entry("F32", "[99999999999999999999999]", "[0,4]") + "}", 4, "not an integer");
}

TEST_CASE("Shapes whose bytes overflow are refused, also behind a zero") {
  // 2^62 elements of 4 bytes are 2^64 bytes: 0 if the product wraps around.
  check_refused("{\"a\":" + entry("F32", "[4611686018427387904]", "[0,0]") + "}", 0, "more than 2^63 bytes");
  check_refused("{\"a\":" + entry("I8", "[4294967296,4294967296]", "[0,0]") + "}", 0, "more than 2^63 bytes");
  check_refused("{\"a\":" + entry("F32", "[0,4611686018427387904,4611686018427387904]", "[0,0]") + "}", 0,
                "more than 2^63");
  std::string many = "[1";
  for (int i = 0; i < 64; ++i) many += ",1";
  check_refused("{\"a\":" + entry("I8", many + "]", "[0,1]") + "}", 1, "more than 64 sizes");
}

TEST_CASE("Tensors that overlap, leave gaps or leave a rest are refused") {
  const std::string first = "{\"a\":" + entry("I8", "[4]", "[0,4]");
  check_refused(first + ",\"b\":" + entry("I8", "[4]", "[2,6]") + "}", 6, "tensor \"b\" starts at byte 2");
  check_refused(first + ",\"b\":" + entry("I8", "[4]", "[0,4]") + "}", 4, "tensor \"b\" starts at byte 0");
  check_refused(first + ",\"b\":" + entry("I8", "[2]", "[6,8]") + "}", 8, "starts at byte 6 of the data");
  check_refused(first + "}", 7, "3 bytes after the last tensor");
  check_refused("{}", 1, "1 bytes after the last tensor");
}

TEST_CASE("Names that come twice are refused") {
  const std::string tensor = "\"a\":" + entry("I8", "[0]", "[0,0]");
  check_refused("{" + tensor + "," + tensor + "}", 0, "has \"a\" twice");
  check_refused(R"({"__metadata__":{},"__metadata__":{}})", 0, "has \"__metadata__\" twice");
  check_refused(R"({"a":{"dtype":"I8","dtype":"I8","shape":[0],"data_offsets":[0,0]}})", 0, "has \"dtype\" twice");
}

TEST_CASE("Deep nesting is refused early") {
  check_refused("{\"a\":" + std::string(1'000'000, '['), 0, "nested more than");
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  check_refused(objects, 0, "nested more than");
}

TEST_CASE("A hostile name is shown escaped and cut") {
  try {
    decode_safetensors_header(R"({"\u001b[2J)" + std::string(5000, 'x') + "\":1}", 0, "'file'");
    FAIL("accepted");
  } catch (const RunError& error) {
    const std::string message = error.what();
    CHECK(message.size() < 400);
    CHECK(message.find('\x1B') == std::string::npos);
  }
}

TEST_CASE("A header longer than the file or the format's limit is refused") {
  const test::TemporaryFolder folder;
  for (const uint64_t length : {uint64_t{9}, uint64_t{1} << 40, ~uint64_t{0}, ~uint64_t{0} - 7}) {
    std::string file(8, '\0');
    std::memcpy(file.data(), &length, sizeof length);
    folder.write("a", file + "{}      ");
    CHECK_THROWS_WITH(read_safetensors(folder / "a"), Contains("its header would have " + std::to_string(length)));
  }
}

TEST_CASE("A header that would be too long to read is not written") {
  const test::TemporaryFolder folder;
  const auto write = [&](uint64_t length) {
    write_tensor_file(folder / "a", {{"x", at::ones({1})}}, {{"rules", std::string(length, 'x')}});
  };
  CHECK_NOTHROW(write(kMaxSafetensorsHeader - 1000));
  CHECK(read_safetensors(folder / "a").metadata.at("rules").size() == kMaxSafetensorsHeader - 1000);
  CHECK_THROWS_WITH(write(kMaxSafetensorsHeader), Contains("readers accept 16777216"));
}

TEST_CASE("A BOOL byte other than 0 and 1 is refused") {
  const test::TemporaryFolder folder;
  write_tensor_file(folder / "a", {{"mask", at::ones({5}, at::kBool)}});
  std::string file = test::read_file(folder / "a");
  file[file.size() - 2] = 2;
  folder.write("a", file);
  CHECK_THROWS_WITH(read_safetensors(folder / "a"), Contains("tensor \"mask\" is of truth values"));
}

TEST_CASE("Every cut of a file is refused") {
  const test::TemporaryFolder folder;
  write_tensor_file(folder / "a", {{"x", at::ones({4})}, {"y", at::ones({3}, at::kByte)}}, {{"k", "v"}});
  const std::string file = test::read_file(folder / "a");
  for (size_t size = 0; size < file.size(); ++size) {
    folder.write("cut", file.substr(0, size));
    CHECK_FALSE(is_readable(folder / "cut"));
  }
}

TEST_CASE("Random damage to a header is refused or harmless") {
  const SafetensorsHeader header{{{"x", Dtype::kFloat32, {4}, 0, 16}, {"y", Dtype::kBool, {3}, 16, 19}}, {{"k", "v"}}};
  const std::string json = encode_safetensors_header(header, "'file'");
  Damage damage;
  int refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    const std::string damaged = damage.applied_to(json);
    try {
      const SafetensorsHeader read = decode_safetensors_header(damaged, 19, "'file'");
      for (const SafetensorsEntry& entry : read.entries) CHECK(entry.end <= 19);
    } catch (const RunError&) {
      ++refused;
    }
  }
  CHECK(refused > 15'000);  // little of the header is spaces and names, where damage may be harmless
}

TEST_CASE("Random damage to a file is refused or harmless") {
  const test::TemporaryFolder folder;
  write_tensor_file(folder / "a", {{"x", at::ones({4})}, {"y", at::ones({3}, at::kBool)}}, {{"k", "v"}});
  const std::string file = test::read_file(folder / "a");
  Damage damage;
  int refused = 0;
  for (int round = 0; round < 500; ++round) {
    folder.write("damaged", damage.applied_to(file));
    if (!is_readable(folder / "damaged")) ++refused;
  }
  CHECK(refused > 300);
}
