#include "src/measure/check/closed_fill.h"

#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include <cmath>

#include "src/core/digest.h"

namespace settrain {
namespace {

uint32_t mix(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7FEB352DU;
  x ^= x >> 15;
  x *= 0x846CA68BU;
  x ^= x >> 16;
  return x;
}

double unit(uint32_t stream, int64_t j) {
  return mix(mix(stream + 1) + static_cast<uint32_t>(j)) / 4294967296.0;
}

double symmetric(uint32_t stream, int64_t j) {
  return 2 * unit(stream, j) - 1;
}

double filled_value(const std::string& name, const at::Tensor& tensor, uint32_t stream, int64_t j) {
  if (name.ends_with("running_var")) return 1 + 0.25 * unit(stream, j);
  if (name.ends_with("running_mean")) return 0.0625 * symmetric(stream, j);
  if (tensor.dim() >= 2) {
    const double fan = static_cast<double>(tensor.numel()) / static_cast<double>(tensor.size(0));
    return std::sqrt(4.5 / fan) * symmetric(stream, j);
  }
  if (name.ends_with("weight")) return 1 + 0.125 * symmetric(stream, j);
  return 0.125 * symmetric(stream, j);
}

}  // namespace

at::Tensor closed_noise(uint32_t stream, int64_t count) {
  at::Tensor noise = at::empty({count}, at::kDouble);
  for (int64_t j = 0; j < count; ++j) noise.data_ptr<double>()[j] = symmetric(stream, j);
  return noise;
}

std::string closed_fill(const NamedTensors& tensors, uint32_t salt) {
  c10::NoGradGuard no_grad;
  Sha256 digest;
  uint32_t stream = 0;
  for (const auto& [name, tensor] : tensors) {
    if (!tensor.is_floating_point()) {
      tensor.zero_();
      continue;
    }
    at::Tensor values = at::empty(tensor.sizes(), at::kFloat);
    float* value = values.data_ptr<float>();
    for (int64_t j = 0; j < values.numel(); ++j)
      value[j] = static_cast<float>(filled_value(name, tensor, stream + salt, j));
    digest.add({reinterpret_cast<const uint8_t*>(value), static_cast<size_t>(values.numel()) * sizeof(float)});
    tensor.copy_(values);
    ++stream;
  }
  return digest.hex();
}

at::Tensor closed_input(at::IntArrayRef shape, uint32_t salt) {
  constexpr uint32_t kInputStream = 1000;
  at::Tensor images = at::empty(shape, at::kFloat);
  float* pixel = images.data_ptr<float>();
  int64_t j = 0;
  for (int64_t n = 0; n < shape[0]; ++n) {
    for (int64_t c = 0; c < shape[1]; ++c) {
      for (int64_t h = 0; h < shape[2]; ++h) {
        for (int64_t w = 0; w < shape[3]; ++w, ++j) {
          const double wave = 0.9 * std::sin(0.11 * (n + 1) * h + 0.7 * c) * std::cos(0.06 * (n + 2) * w - 0.4 * c);
          pixel[j] =
              static_cast<float>(wave + 0.3 * symmetric(kInputStream + salt, j) + 0.75 * std::cos(2 * n + 1.1 * c));
        }
      }
    }
  }
  return images;
}

}  // namespace settrain
