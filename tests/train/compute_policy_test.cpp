#include "src/train/compute_policy.h"

#include <ATen/ATen.h>

#include "models/model.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

const Normalisation kStatistics{{0.5F, 0.4F, 0.3F}, {0.2F, 0.3F, 0.4F}};

ComputePolicy made(const std::string& precision, config::Switch channels_last, at::Device device) {
  TrainOptions options;
  options.precision = precision;
  options.channels_last = channels_last;
  return make_compute_policy(options, device, kStatistics);
}

TEST_CASE("the layout follows device and precision where it is left open, and the key otherwise") {
  CHECK(made("float32", config::Switch::kAuto, at::kCPU).channels_last);
  CHECK(made("bf16", config::Switch::kAuto, at::kCUDA).channels_last);
  CHECK_FALSE(made("float32", config::Switch::kAuto, at::kCUDA).channels_last);
  CHECK(made("float32", config::Switch::kOn, at::kCUDA).channels_last);
  CHECK_FALSE(made("float32", config::Switch::kOff, at::kCPU).channels_last);
  CHECK(made("bf16", config::Switch::kAuto, at::kCPU).bf16);
  CHECK_FALSE(made("float32", config::Switch::kAuto, at::kCPU).bf16);
  CHECK(made("bf16", config::Switch::kOff, at::kCPU).describe() == "cpu, bf16, channels first");
}

TEST_CASE("TF32 is forbidden by what computes; looking for a device changes nothing") {
  at::globalContext().setAllowTF32CuDNN(true);
  CHECK(find_device("cpu").is_cpu());
  CHECK(at::globalContext().allowTF32CuDNN());
  made("float32", config::Switch::kAuto, at::kCPU);
  CHECK_FALSE(at::globalContext().allowTF32CuDNN());
  CHECK_FALSE(at::globalContext().allowTF32CuBLAS());
}

// Answers with its input, so that a test sees it.
class Mirror : public Model {
 public:
  at::Tensor features(const at::Tensor& images) override { return images.flatten(1); }
  ModelOutput classify(const at::Tensor& features) override {
    ModelOutput output;
    output.scores = features;
    return output;
  }
};

TEST_CASE("a GPU is given bytes, a CPU numbers in the layout and precision of its convolutions") {
  CHECK((made("float32", config::Switch::kAuto, at::kCUDA).pixel_format() == PixelFormat{PixelType::kByte, false}));
  CHECK((made("bf16", config::Switch::kAuto, at::kCUDA).pixel_format() == PixelFormat{PixelType::kByte, true}));
  CHECK((made("float32", config::Switch::kAuto, at::kCPU).pixel_format() == PixelFormat{PixelType::kFloat, true}));
  CHECK((made("bf16", config::Switch::kOff, at::kCPU).pixel_format() == PixelFormat{PixelType::kBFloat16, false}));
}

// [1, 3, 16, 16]: every pixel value in every channel, as the loader writes it in that format.
at::Tensor written(PixelFormat format) {
  const at::ScalarType type = format.type == PixelType::kByte    ? at::kByte
                              : format.type == PixelType::kFloat ? at::kFloat
                                                                 : at::kBFloat16;
  at::Tensor image = at::empty({1, 3, 16, 16}, at::TensorOptions(type),
                               format.channels_last ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous);
  const PixelWriter writer(kStatistics, format);
  std::vector<uint8_t> row(16 * 3);
  for (int64_t y = 0; y < 16; ++y) {
    for (int64_t x = 0; x < 16; ++x) {
      for (int64_t c = 0; c < 3; ++c) row[static_cast<size_t>(3 * x + c)] = static_cast<uint8_t>(16 * y + x);
    }
    writer.write_row(row.data(), y, 16, 16, false, image.mutable_data_ptr());
  }
  return image;
}

TEST_CASE("bytes become what the loader would make for the CPU, to the last bit: bf16 and layout too") {
  for (const char* precision : {"float32", "bf16"}) {
    for (const config::Switch channels_last : {config::Switch::kOff, config::Switch::kOn}) {
      CAPTURE(precision, channels_last == config::Switch::kOn);
      const ComputePolicy policy = made(precision, channels_last, at::kCPU);
      const PixelFormat format = policy.pixel_format();
      const at::Tensor expected = written(format);
      const at::Tensor input = as_input(written({PixelType::kByte, format.channels_last}), policy);
      CHECK(input.scalar_type() == expected.scalar_type());
      CHECK(input.strides() == expected.strides());
      CHECK(at::equal(input, expected));
      Mirror mirror;
      CHECK(at::equal(forward(mirror, input, policy).scores, expected.flatten(1)));
    }
  }
}

}  // namespace
}  // namespace settrain
