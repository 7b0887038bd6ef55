#include "losses/ops/gaussian_noise.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <utility>

#include "losses/kernels/noise_kernels.h"
#include "losses/ops/loss_kernels.h"

#if defined(SETTRAIN_HAS_CUDA)
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#endif

namespace settrain {
namespace {

at::Tensor noise_on_cpu(const NoiseCounter& first, int64_t batch, int64_t draws, int64_t classes) {
  at::Tensor noise = at::empty({batch, draws, classes}, at::kFloat);
  float* out = noise.data_ptr<float>();
  const auto fill_noise_row = SETTRAIN_PICK(instruction_set(), fill_noise_row);
  const int64_t row_size = draws * classes;
  const int64_t rows_per_task = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, row_size));
  at::parallel_for(0, batch, rows_per_task, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const NoiseCounter counter{first.key, first.position + static_cast<uint32_t>(row), first.step};
      fill_noise_row(counter, draws, classes, out + row * row_size);
    }
  });
  return noise;
}

// With the step itself, where the key has it in the memory of the device. A GPU is waited for.
NoiseKey with_known_step(NoiseKey key, at::Device device) {
  if (!key.step_on_device) return key;
  const auto options = at::TensorOptions(device).dtype(at::kLong);
  key.step =
      at::from_blob(const_cast<int64_t*>(std::exchange(key.step_on_device, nullptr)), {}, options).item<int64_t>();
  return key;
}

}  // namespace

at::Tensor gaussian_noise(const NoiseKey& key, int64_t batch, int64_t draws, int64_t classes, at::Device device) {
#if defined(SETTRAIN_HAS_CUDA)
  if (device.is_cuda() && has_loss_kernels(device)) {
    const c10::cuda::CUDAGuard guard(device);
    const NoiseCounter first = noise_counter(key, batch);
    at::Tensor noise = at::empty({batch, draws, classes}, at::TensorOptions(device).dtype(at::kFloat));
    launch_noise(first, key.step_on_device, batch, draws, classes, noise.data_ptr<float>(),
                 c10::cuda::getCurrentCUDAStream());
    return noise;
  }
#endif
  return noise_on_cpu(noise_counter(with_known_step(key, device), batch), batch, draws, classes).to(device);
}

}  // namespace settrain
