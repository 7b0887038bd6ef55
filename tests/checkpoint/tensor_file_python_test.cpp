// Python's safetensors package reads what we write, and the other way round.
#include <ATen/ATen.h>

#include <cstdlib>

#include "src/checkpoint/checkpoint.h"
#include "tests/support/catch2.h"
#include "tests/support/skip.h"
#include "tests/support/temporary_folder.h"

using namespace settrain;

namespace {

bool run_script(const std::string& python, const std::string& arguments) {
  const std::string script = test::environment("SETTRAIN_SOURCE_DIR") + "/tests/checkpoint/check_safetensors.py";
  return std::system((python + " " + script + " " + arguments).c_str()) == 0;
}

at::Tensor counting(at::ScalarType dtype) {
  return at::arange(-3, 3).to(dtype).view({2, 3});
}

}  // namespace

TEST_CASE("Python reads a checkpoint, value for value", "[slow]") {
  const std::string python = test::environment("SETTRAIN_PYTHON");
  SKIP_UNLESS(!python.empty(), "SETTRAIN_PYTHON is not set");
  const test::TemporaryFolder folder;
  Checkpoint checkpoint;
  for (const at::ScalarType dtype : {at::kDouble, at::kFloat, at::kHalf, at::kBFloat16, at::kLong, at::kInt, at::kShort,
                                     at::kChar, at::kByte, at::kBool}) {
    checkpoint.tensors[std::string("model.") + c10::toString(dtype)] = counting(dtype);
  }
  checkpoint.tensors["model.empty"] = at::empty({0, 3});
  checkpoint.set_integer("state.step", 1LL << 40);
  checkpoint.metadata["config"] = "seed: 4  # \xC3\xA9\n";
  save_checkpoint(folder / "a.safetensors", checkpoint);
  CHECK(run_script(python, "read " + (folder / "a.safetensors").string()));
}

TEST_CASE("We read a file that Python wrote", "[slow]") {
  const std::string python = test::environment("SETTRAIN_PYTHON");
  SKIP_UNLESS(!python.empty(), "SETTRAIN_PYTHON is not set");
  const test::TemporaryFolder folder;
  REQUIRE(run_script(python, "write " + (folder / "b.safetensors").string()));
  const Safetensors read = read_safetensors(folder / "b.safetensors");
  CHECK(read.metadata == TextMap{{"made by", "Python"}});
  CHECK(read.tensors.size() == 5);
  CHECK(at::equal(read.tensors.at("float32"), counting(at::kFloat)));
  CHECK(at::equal(read.tensors.at("float16"), counting(at::kHalf)));
  CHECK(at::equal(read.tensors.at("int64"), counting(at::kLong)));
  CHECK(at::equal(read.tensors.at("bool"), counting(at::kBool)));
  CHECK(at::equal(read.tensors.at("scalar"), at::scalar_tensor(2.5, at::kDouble)));
  CHECK(read.tensors.at("float32").scalar_type() == at::kFloat);
}
