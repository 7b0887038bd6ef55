#include "src/engine/computation.h"

#include <catch2/catch.hpp>

namespace settrain {
namespace {

Computation made(const std::string& precision, const std::string& channels_last, at::Device device) {
  TrainOptions options;
  options.precision = precision;
  options.channels_last = channels_last;
  return make_computation(options, device);
}

TEST_CASE("the layout follows device and precision where it is left open, and the key otherwise", "[fast]") {
  CHECK(made("float32", "auto", at::kCPU).channels_last);
  CHECK(made("bf16", "auto", at::kCUDA).channels_last);
  CHECK_FALSE(made("float32", "auto", at::kCUDA).channels_last);
  CHECK(made("float32", "true", at::kCUDA).channels_last);
  CHECK_FALSE(made("float32", "false", at::kCPU).channels_last);
  CHECK(made("bf16", "auto", at::kCPU).bf16);
  CHECK_FALSE(made("float32", "auto", at::kCPU).bf16);
  CHECK(made("bf16", "false", at::kCPU).describe() == "cpu, bf16, channels first");
}

}  // namespace
}  // namespace settrain
