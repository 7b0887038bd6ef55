// Scores row by row, with their probabilities.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/sigmoid.h>

#include <cstdint>
#include <vector>

#include "losses/kernels/softmax_kernels.h"
#include "metrics/checks.h"
#include "metrics/sets/rules/calibrated_rule.h"

namespace settrain {

/// Calls `use(row, scores, probabilities)` with pointers to the classes of every row. `make_use()` makes the `use` of a
/// thread. A row's probabilities are the same bits whatever the rows beside it. `scores` [rows, classes] T on the CPU,
/// contiguous. Throws what check_finite() throws, after some of the rows.
template <class T, class MakeUse>
void for_each_score_row(const at::Tensor& scores, ProbabilityKind kind, const MakeUse& make_use) {
  constexpr int64_t kRowsOfThread = 64;
  const int64_t classes = scores.size(1);
  if (kind == ProbabilityKind::kSigmoid) check_finite("scores", scores);
  const auto softmax = SETTRAIN_PICK(instruction_set(), softmax_row<T>);
  at::parallel_for(0, scores.size(0), kRowsOfThread, [&](int64_t begin, int64_t end) {
    const at::NoGradGuard no_grad;
    auto use = make_use();
    std::vector<T> probabilities(static_cast<size_t>(classes));
    for (int64_t i = begin; i < end; ++i) {
      const T* row = scores.const_data_ptr<T>() + i * classes;
      if (kind == ProbabilityKind::kSigmoid) {
        // ATen computes the last elements of a tensor by other instructions: of one row these are always the same.
        const at::Tensor p = at::sigmoid(scores.select(0, i));
        use(i, row, p.const_data_ptr<T>());
        continue;
      }
      if (!softmax(row, classes, probabilities.data())) check_finite("scores", scores);
      use(i, row, static_cast<const T*>(probabilities.data()));
    }
  });
}

}  // namespace settrain
