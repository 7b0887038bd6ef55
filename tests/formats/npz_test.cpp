#include "src/formats/npz.h"

#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <span>
#include <stdexcept>

#include "src/core/error.h"
#include "tests/support/catch2.h"
#include "tests/support/read_file.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/weight_bytes.h"

namespace settrain {
namespace {

using Catch::Contains;

std::string npy(const std::string& descr, const std::string& order, const std::string& shape,
                const std::string& bytes) {
  std::string header = "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }";
  header.resize((10 + header.size() + 64) / 64 * 64 - 11, ' ');
  header += '\n';
  return std::string("\x93NUMPY\x01\x00", 8) + test::little_endian(static_cast<uint16_t>(header.size())) + header +
         bytes;
}

std::map<std::string, NumpyArray> arrays_in(const std::string& archive) {
  const test::TemporaryFolder folder;
  folder.write("a.npz", archive);
  return read_npz(folder / "a.npz", {"a", "b"});
}

std::string with_array(const std::string& bytes) {
  return test::ZipBytes().add({"a.npy", bytes}).bytes();
}

// Raw deflate, as numpy.savez_compressed packs.
std::string deflated(std::string bytes) {
  std::string packed(bytes.size() + 64, '\0');
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

const std::string kFourBytes("\x01\x02\x03\x04", 4);

}  // namespace

TEST_CASE("arrays of NumPy are read with their shapes, orders and types") {
  const auto arrays = arrays_in(test::ZipBytes()
                                    .add({"a.npy", npy("|u1", "False", "(2, 2)", kFourBytes)})
                                    .add({"b.npy", npy("<i2", "True", "(1, 2)", kFourBytes)})
                                    .add({"c.npy", "no array, and not asked for"})
                                    .bytes());
  REQUIRE(arrays.size() == 2);
  CHECK(arrays.at("a").dtype == Dtype::kUint8);
  CHECK(arrays.at("a").shape == std::vector<int64_t>{2, 2});
  CHECK(arrays.at("a").stride == std::vector<int64_t>{2, 1});
  CHECK(arrays.at("a").bytes == std::vector<uint8_t>{1, 2, 3, 4});
  CHECK(arrays.at("b").dtype == Dtype::kInt16);
  CHECK(arrays.at("b").stride == std::vector<int64_t>{1, 1});
  for (const auto& [descr, dtype] :
       {std::pair("<u2", Dtype::kUint16), std::pair("<u4", Dtype::kUint32), std::pair("<u8", Dtype::kUint64)}) {
    const std::string eight = kFourBytes + kFourBytes;
    const int64_t length = 8 / (descr[2] - '0');
    const NumpyArray array = arrays_in(with_array(npy(descr, "False", fmt::format("({},)", length), eight))).at("a");
    CHECK(array.dtype == dtype);
    CHECK(array.shape == std::vector<int64_t>{length});
    CHECK(array.bytes == std::vector<uint8_t>{1, 2, 3, 4, 1, 2, 3, 4});
  }
  CHECK(arrays_in(with_array(npy("|u1", "False", "()", "\x01"))).at("a").shape.empty());
  CHECK(arrays_in(with_array(npy("|u1", "False", "(4,)", kFourBytes))).at("a").shape == std::vector<int64_t>{4});
}

TEST_CASE("an archive of NumPy is written so that it can be read") {
  const test::TemporaryFolder folder;
  const std::vector<float> features{1.5F, -2.0F, 0.0F, 3e30F, 1e-30F, 7.0F};
  const std::vector<int64_t> labels{3, -1};
  const auto write = [&](const std::string& file) {
    NpzWriter writer(folder / file);
    writer.add("features", Dtype::kFloat32, {2, 3}, std::as_bytes(std::span(features)));
    writer.add("labels", Dtype::kInt64, {2}, std::as_bytes(std::span(labels)));
    writer.add("none", Dtype::kInt64, {0, 4}, {});
    writer.add_texts("paths", {"a.png", "\xc3\xa4\xf0\x9f\x8c\xb3 b.png", "bad \xff"});
    CHECK_FALSE(std::filesystem::exists(folder / file));
    writer.commit();
  };
  write("a.npz");
  const auto arrays = read_npz(folder / "a.npz", {"features", "labels", "none"});
  REQUIRE(arrays.size() == 3);
  CHECK(arrays.at("features").dtype == Dtype::kFloat32);
  CHECK(arrays.at("features").shape == std::vector<int64_t>{2, 3});
  CHECK(std::memcmp(arrays.at("features").bytes.data(), features.data(), arrays.at("features").bytes.size()) == 0);
  CHECK(arrays.at("labels").dtype == Dtype::kInt64);
  CHECK(std::memcmp(arrays.at("labels").bytes.data(), labels.data(), arrays.at("labels").bytes.size()) == 0);
  CHECK(arrays.at("none").bytes.empty());
  write("b.npz");
  CHECK(test::read_file(folder / "a.npz") == test::read_file(folder / "b.npz"));

  NpzWriter writer(folder / "c.npz");
  const auto bytes = std::as_bytes(std::span(features));
  CHECK_THROWS_AS(writer.add("features", Dtype::kFloat32, {2, 2}, bytes), std::invalid_argument);
  CHECK_THROWS_AS(writer.add("features", Dtype::kBfloat16, {12}, bytes), std::invalid_argument);
}

TEST_CASE("compressed arrays are unpacked, and checked against size and checksum") {
  const std::string array = npy("|u1", "False", "(1000,)", std::string(1000, 'x'));
  test::ZipEntry entry{.name = "a.npy", .content = array, .method = 8, .packed = deflated(array)};
  REQUIRE(entry.packed.size() < array.size() / 4);
  CHECK(arrays_in(test::ZipBytes().add(entry).bytes()).at("a").bytes == std::vector<uint8_t>(1000, 'x'));

  const auto check_refused = [](const test::ZipEntry& damaged, const std::string& reason) {
    const std::string bytes = test::ZipBytes().add(damaged).bytes();
    CHECK_THROWS_WITH(arrays_in(bytes), Contains("a.npz'") && Contains("\"a.npy\"") && Contains(reason));
  };
  test::ZipEntry damaged = entry;
  damaged.packed[5] ^= 1;
  check_refused(damaged, "is damaged");
  test::ZipEntry other = entry;
  other.content.back() = 'y';
  check_refused(other, "its checksum differs");
  test::ZipEntry longer = entry;
  longer.content += 'x';
  check_refused(longer, "is damaged");
  test::ZipEntry endless = entry;
  endless.content.resize(1000 * 1032 + entry.packed.size() * 1032);
  check_refused(endless, "more bytes than it can");
  test::ZipEntry foreign = entry;
  foreign.method = 12;
  check_refused(foreign, "another method than deflate");
}

TEST_CASE("a damaged or foreign array is refused by name") {
  const auto check_refused = [](const std::string& bytes, const std::string& reason) {
    CHECK_THROWS_WITH(arrays_in(with_array(bytes)), Contains("a.npz'") && Contains("\"a\"") && Contains(reason));
    CHECK_THROWS_AS(arrays_in(with_array(bytes)), RunError);
  };
  check_refused("", "no array");
  check_refused(npy("<f4", "False", "(2, 2)", kFourBytes), "has 4 bytes, and its shape asks for 16");
  check_refused(npy(">f4", "False", "(1,)", kFourBytes), "of dtype \">f4\"");
  check_refused(npy(">u2", "False", "(2,)", kFourBytes), "of dtype \">u2\"");
  check_refused(npy("<U1", "False", "(1,)", kFourBytes), "of dtype");
  check_refused(npy("|u1", "Perhaps", "(4,)", kFourBytes), "header cannot be read");
  check_refused(npy("|u1", "False", "(-4,)", kFourBytes), "header cannot be read");
  check_refused(npy("|u1", "False", "(4", kFourBytes), "header cannot be read");
  check_refused(npy("<f8", "False", "(4611686018427387904, 2)", kFourBytes), "");
  std::string newer = npy("|u1", "False", "(4,)", kFourBytes);
  newer[6] = 4;
  check_refused(newer, "version 4");
  std::string endless = npy("|u1", "False", "(4,)", kFourBytes);
  endless[9] = '\xFF';
  check_refused(endless, "longer than the file");
}

TEST_CASE("texts of NumPy that are none, or have impossible characters, are refused") {
  const auto texts_in = [](const std::string& array) {
    const test::TemporaryFolder folder;
    folder.write("a.npz", with_array(array));
    return read_npz_texts(folder / "a.npz", {"a"});
  };
  CHECK(texts_in(npy("<U1", "False", "(1,)", std::string("e\0\0\0", 4))).at("a") == std::vector<std::string>{"e"});
  CHECK_THROWS_WITH(texts_in(npy("<U1", "False", "(1,)", std::string("\0\xd8\0\0", 4))), Contains("text 0"));
  CHECK_THROWS_WITH(texts_in(npy("<U2", "False", "(1,)", kFourBytes)), Contains("4 bytes") && Contains("8"));
  CHECK_THROWS_WITH(texts_in(npy("<f4", "False", "(1,)", kFourBytes)), Contains("<f4"));
  CHECK_THROWS_WITH(texts_in(npy("<U1", "False", "(1, 1)", kFourBytes)), Contains("2 dimensions"));
}

}  // namespace settrain
