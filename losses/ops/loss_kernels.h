// Losses whose gradient is computed together with their value: by kernels on raw pointers, or chunk by chunk.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <cstdint>
#include <functional>

struct CUstream_st;

namespace settrain {

/// Whether the kernels of the losses run on that device: on the CPU; and on a GPU that this build was compiled for.
/// Elsewhere losses are computed by LibTorch's operations.
bool has_loss_kernels(at::Device device);

/// Whether a gradient with respect to `scores` will be asked for.
bool wants_gradient(const at::Tensor& scores);

/// For backward passes that record no operations: throws Error where a second derivative asks for them.
void check_first_derivative();

/// `values` [batch], functions of the rows of `scores` [batch, classes], with the gradient of each row's value,
/// `gradient` [batch, classes].
at::Tensor with_gradient(const at::Tensor& scores, const at::Tensor& values, const at::Tensor& gradient);

/// The same from compute(rows, values, gradient), which fills both: rows [batch, classes] are the scores, contiguous,
/// of dtype T; `gradient` is null where none is wanted.
template <class T, class Compute>
at::Tensor computed_with_gradient(const at::Tensor& scores, const Compute& compute) {
  const at::Tensor rows = scores.detach().contiguous(), values = at::empty({rows.size(0)}, rows.options());
  const at::Tensor gradient = wants_gradient(scores) ? at::empty_like(rows) : at::Tensor();
  compute(rows, values.data_ptr<T>(), gradient.defined() ? gradient.data_ptr<T>() : nullptr);
  return gradient.defined() ? with_gradient(scores, values, gradient) : values;
}

/// Calls kernel(begin, end, workspace) for parts of the rows [0, batch), in parallel on the CPU. A part has about
/// `numbers_per_task` numbers, `row_size` a row: enough to be worth a task. `workspace`: memory of `bytes` bytes.
void for_rows(int64_t batch, int64_t row_size, int64_t numbers_per_task, int64_t bytes,
              const std::function<void(int64_t begin, int64_t end, void* workspace)>& kernel);

/// Calls launch(stream) with the current stream of that CUDA device, which is the current device meanwhile. Only in
/// builds with CUDA.
void on_stream_of(at::Device device, const std::function<void(CUstream_st* stream)>& launch);

/// f(rows, first_row), row by row, [batch] in the dtype of `scores`, with a gradient: for an f whose intermediate
/// values are too large to be kept for a whole batch. f maps `rows` [some rows, classes] float64 to their values;
/// `first_row` is the number of the first. Each chunk of rows is evaluated together with its gradient [rows, classes],
/// and only that is kept for the backward pass. `doubles_per_row`: about how many intermediate values f has in a row.
at::Tensor rowwise(const at::Tensor& scores, int64_t doubles_per_row,
                   const std::function<at::Tensor(const at::Tensor& rows, int64_t first_row)>& f);

}  // namespace settrain
