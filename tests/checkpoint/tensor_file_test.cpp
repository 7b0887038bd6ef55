#include "src/checkpoint/tensor_file.h"

#include <ATen/ATen.h>

#include <bit>

#include "src/core/error.h"
#include "tests/support/catch2.h"
#include "tests/support/child_process.h"
#include "tests/support/read_file.h"
#include "tests/support/temporary_folder.h"

using namespace settrain;
using Catch::Contains;
using test::read_file;

namespace {

TensorMap one_of_each_dtype() {
  TensorMap tensors;
  for (const at::ScalarType dtype : {at::kDouble, at::kFloat, at::kHalf, at::kBFloat16, at::kLong, at::kInt, at::kShort,
                                     at::kChar, at::kByte, at::kBool}) {
    tensors[std::string("tensor.") + c10::toString(dtype)] = at::arange(15).remainder(7).to(dtype).view({3, 5});
  }
  return tensors;
}

// 8 bytes of length and the JSON of the header.
std::string header_of(const std::string& file) {
  uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof length);
  return file.substr(8, length);
}

}  // namespace

TEST_CASE("Every dtype comes back as it was, with its shape") {
  const test::TemporaryFolder folder;
  TensorMap tensors = one_of_each_dtype();
  tensors["scalar"] = at::scalar_tensor(2.5);
  tensors["empty"] = at::empty({0, 4});
  write_tensor_file(folder / "a", tensors, {{"key", "value \"quoted\" \xC3\xA9\n"}, {"", ""}});
  const Safetensors read = read_safetensors(folder / "a");
  CHECK(read.metadata == TextMap{{"key", "value \"quoted\" \xC3\xA9\n"}, {"", ""}});
  REQUIRE(read.tensors.size() == tensors.size());
  for (const auto& [name, tensor] : tensors) {
    INFO(name);
    CHECK(read.tensors.at(name).scalar_type() == tensor.scalar_type());
    CHECK(at::equal(read.tensors.at(name), tensor));
  }
}

TEST_CASE("Unsigned integers of other programs come back as they were") {
  const test::TemporaryFolder folder;
  const at::Tensor numbers = at::tensor({0, 1, 65535}, at::kLong);
  for (const at::ScalarType dtype : {at::kUInt16, at::kUInt32, at::kUInt64}) {
    INFO(c10::toString(dtype));
    write_tensor_file(folder / "a", {{"x", numbers.to(dtype)}});
    const at::Tensor read = read_safetensors(folder / "a").tensors.at("x");
    CHECK(read.scalar_type() == dtype);
    CHECK(at::equal(read.to(at::kLong), numbers));
    CHECK_THAT(header_of(read_file(folder / "a")), Contains("\"U" + std::to_string(8 * read.element_size()) + "\""));
  }
}

TEST_CASE("Bits survive: NaN payloads, infinities, negative zero and subnormals") {
  const test::TemporaryFolder folder;
  const std::vector<int32_t> bits{0x7FC12345, -1, 0x7F800000, static_cast<int32_t>(0x80000000), 1};
  const at::Tensor tensor = at::tensor(bits).view(at::kFloat);
  write_tensor_file(folder / "a", {{"x", tensor}});
  CHECK(at::equal(read_safetensors(folder / "a").tensors.at("x").view(at::kInt), at::tensor(bits)));
}

TEST_CASE("The strides of a tensor do not show in the file") {
  const test::TemporaryFolder folder;
  const at::Tensor plain = at::arange(2 * 3 * 4 * 5, at::kFloat).view({2, 3, 4, 5});
  write_tensor_file(folder / "plain", {{"x", plain}});
  write_tensor_file(folder / "last", {{"x", plain.contiguous(at::MemoryFormat::ChannelsLast).requires_grad_()}});
  write_tensor_file(folder / "view", {{"x", plain.transpose(0, 3).contiguous().transpose(0, 3)}});
  CHECK(read_file(folder / "plain") == read_file(folder / "last"));
  CHECK(read_file(folder / "plain") == read_file(folder / "view"));
}

TEST_CASE("The layout of a file, to the byte") {
  const test::TemporaryFolder folder;
  write_tensor_file(folder / "a", {{"b", at::tensor({1.5F, -2.0F})}, {"a", at::tensor({1, 0, 1}).to(at::kBool)}},
                    {{"k", "v"}});
  const std::string json = R"({"__metadata__":{"k":"v"},"b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                           R"("a":{"dtype":"BOOL","shape":[3],"data_offsets":[8,11]}})";
  const std::string file = read_file(folder / "a");
  CHECK(header_of(file) == json + std::string((8 - json.size() % 8) % 8, ' '));
  CHECK(header_of(file).size() % 8 == 0);
  CHECK(file.substr(8 + header_of(file).size()) == std::string("\0\0\xC0\x3F\0\0\0\xC0\1\0\1", 11));
}

TEST_CASE("Tensors start at multiples of their element's size") {
  const test::TemporaryFolder folder;
  write_tensor_file(folder / "a", one_of_each_dtype());
  const std::string header = header_of(read_file(folder / "a"));
  CHECK_THAT(header, Contains(R"("tensor.Double":{"dtype":"F64","shape":[3,5],"data_offsets":[0,120]})"));
  CHECK(header.find("F64") < header.find("F32"));
  CHECK(header.find("I32") < header.find("BF16"));
  CHECK(header.find("I16") < header.find("BOOL"));
}

TEST_CASE("A file without tensors is valid") {
  const test::TemporaryFolder folder;
  write_tensor_file(folder / "a", {});
  CHECK(read_safetensors(folder / "a").tensors.empty());
  CHECK(read_file(folder / "a") == std::string("\x08\0\0\0\0\0\0\0{}      ", 16));
}

TEST_CASE("What the format does not hold is refused by name, before a file is touched") {
  const test::TemporaryFolder folder;
  CHECK_THROWS_WITH(write_tensor_file(folder / "a", {{"z", at::zeros({2}, at::kComplexFloat)}}), Contains("'z'"));
  CHECK_THROWS_WITH(write_tensor_file(folder / "a", {{"s", at::zeros({2}).to_sparse()}}), Contains("'s'"));
  CHECK_THROWS_WITH(write_tensor_file(folder / "a", {{"u", at::Tensor()}}), Contains("'u'"));
  CHECK_THROWS_WITH(write_tensor_file(folder / "a", {{"__metadata__", at::zeros({2})}}), Contains("__metadata__"));
  CHECK_THROWS_AS(write_tensor_file(folder / "a", {{"\xFF", at::zeros({2})}}), RunError);
  CHECK_THROWS_AS(write_tensor_file(folder / "a", {}, {{"k", "\xFF"}}), RunError);
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("A full disk leaves the file before it") {
  const test::TemporaryFolder folder;
  write_tensor_file(folder / "a", {{"x", at::ones({3})}});
  const at::Tensor large = at::zeros({100'000});
  const int code = test::run_in_child([&] {
    test::limit_file_size(50'000);
    try {
      write_tensor_file(folder / "a", {{"x", large}});
    } catch (const RunError& error) {
      return std::string(error.what()).find("a': File too large") != std::string::npos ? 0 : 1;
    }
    return 2;
  });
  CHECK(code == 0);
  CHECK(at::equal(read_safetensors(folder / "a").tensors.at("x"), at::ones({3})));
}

TEST_CASE("A file that is not there, or not a file, is named") {
  const test::TemporaryFolder folder;
  CHECK_THROWS_WITH(read_safetensors(folder / "none"), Contains("none': No such file or directory"));
  CHECK_THROWS_WITH(read_safetensors(folder.path()), Contains("is not a regular file"));
  folder.write("short", std::string("1234567"));
  CHECK_THROWS_WITH(read_safetensors(folder / "short"), Contains("not a safetensors file: it has 7 bytes"));
}
