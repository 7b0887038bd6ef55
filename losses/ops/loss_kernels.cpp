#include "losses/ops/loss_kernels.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "src/core/error.h"

#if defined(SETTRAIN_HAS_CUDA)
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <map>
#include <mutex>

#include "losses/kernels/noised_kernels.h"
#endif

namespace settrain {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

#if defined(SETTRAIN_HAS_CUDA)
// Asks CUDA once for each device.
bool has_code_for(c10::DeviceIndex index) {
  static std::mutex mutex;
  static std::map<c10::DeviceIndex, bool> known;
  const std::lock_guard lock(mutex);
  if (const auto found = known.find(index); found != known.end()) return found->second;
  const c10::DeviceGuard guard(at::Device(at::kCUDA, index));
  return known[index] = has_code_here();
}
#endif

struct WithGradient : torch::autograd::Function<WithGradient> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& /*scores*/, const at::Tensor& values,
                            const at::Tensor& gradient) {
    context->save_for_backward({gradient});
    return values.clone();
  }
  static variable_list backward(AutogradContext* context, const variable_list& outer) {
    check_first_derivative();
    return {context->get_saved_variables()[0] * outer[0].unsqueeze(1), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

bool has_loss_kernels(at::Device device) {
#if defined(SETTRAIN_HAS_CUDA)
  if (device.is_cuda()) {
    return has_code_for(device.has_index() ? device.index()
                                           : c10::impl::VirtualGuardImpl(at::kCUDA).getDevice().index());
  }
#endif
  return device.is_cpu();
}

bool wants_gradient(const at::Tensor& scores) {
  return c10::GradMode::is_enabled() && scores.requires_grad();
}

void check_first_derivative() {
  if (c10::GradMode::is_enabled()) throw Error("the gradient of this loss has no gradient of its own (create_graph)");
}

at::Tensor with_gradient(const at::Tensor& scores, const at::Tensor& values, const at::Tensor& gradient) {
  return WithGradient::apply(scores, values, gradient);
}

void for_rows(int64_t batch, int64_t row_size, int64_t numbers_per_task, int64_t bytes,
              const std::function<void(int64_t begin, int64_t end, void* workspace)>& kernel) {
  const int64_t rows_per_task = std::max<int64_t>(1, numbers_per_task / std::max<int64_t>(1, row_size));
  at::parallel_for(0, batch, rows_per_task, [&](int64_t begin, int64_t end) {
    const auto workspace = std::make_unique_for_overwrite<char[]>(static_cast<size_t>(bytes));
    kernel(begin, end, workspace.get());
  });
}

#if defined(SETTRAIN_HAS_CUDA)
void on_stream_of(at::Device device, const std::function<void(CUstream_st* stream)>& launch) {
  const c10::DeviceGuard guard(device);
  const c10::impl::VirtualGuardImpl cuda(at::kCUDA);
  launch(static_cast<CUstream_st*>(cuda.getStreamNativeHandle(cuda.getStream(device))));
}
#endif

at::Tensor rowwise(const at::Tensor& scores, int64_t doubles_per_row,
                   const std::function<at::Tensor(const at::Tensor& rows, int64_t first_row)>& f) {
  constexpr int64_t kDoublesAtOnce = 1 << 23;  // 64 MiB
  const int64_t rows = std::max<int64_t>(1, kDoublesAtOnce / std::max<int64_t>(1, doubles_per_row));
  const bool differentiate = wants_gradient(scores);
  std::vector<at::Tensor> values, gradients;
  for (int64_t first = 0; first < scores.size(0); first += rows) {
    const int64_t end = std::min(first + rows, scores.size(0));
    const at::Tensor chunk = scores.detach().slice(0, first, end).to(at::kDouble).clone().requires_grad_(differentiate);
    const at::Tensor value = f(chunk, first);
    values.push_back(value.detach());
    if (differentiate) gradients.push_back(torch::autograd::grad({value.sum()}, {chunk})[0]);
  }
  const at::Tensor all = at::cat(values).to(scores.scalar_type());
  return differentiate ? with_gradient(scores, all, at::cat(gradients).to(scores.scalar_type())) : all;
}

}  // namespace settrain
