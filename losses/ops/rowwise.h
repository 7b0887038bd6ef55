// Functions of single rows whose intermediate values are too large to be kept for a whole batch.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

namespace settrain {

/// f(scores in float64): [rows, classes] to [rows], row by row, as [batch] in the dtype of `scores`; its second
/// argument is the number of the first of these rows. A chunk of rows at a time is evaluated together with its
/// gradient, of which alone is kept what the backward pass needs: [batch, classes]. `doubles_per_row`: about how many
/// intermediate values f has in a row.
at::Tensor rowwise(const at::Tensor& scores, int64_t doubles_per_row,
                   const std::function<at::Tensor(const at::Tensor& scores, int64_t first_row)>& f);

}  // namespace settrain
