// Scores row by row, with their probabilities.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>

#include <algorithm>
#include <cstdint>

#include "metrics/sets/rules/calibrated_rule.h"

namespace settrain {

/// Calls `use(row, scores, probabilities)` with pointers to the classes of every row, some rows at a time, so that
/// their probabilities stay in the cache. `make_use()` makes the `use` of a thread. A row's probabilities are the same
/// bits whatever the rows beside it. `scores` [rows, classes] T on the CPU, contiguous.
template <class T, class MakeUse>
void for_each_score_row(const at::Tensor& scores, ProbabilityKind kind, const MakeUse& make_use) {
  constexpr int64_t kRows = 64;
  const int64_t classes = scores.size(1);
  at::parallel_for(0, scores.size(0), kRows, [&](int64_t begin, int64_t end) {
    const at::NoGradGuard no_grad;
    auto use = make_use();
    // ATen computes the last elements of a tensor's sigmoid by other instructions: row by row these are always the
    // same.
    const int64_t step = kind == ProbabilityKind::kSoftmax ? kRows : 1;
    for (int64_t first = begin; first < end; first += step) {
      const at::Tensor rows = scores.narrow(0, first, std::min(step, end - first));
      const at::Tensor p = kind == ProbabilityKind::kSoftmax ? at::softmax(rows, 1) : at::sigmoid(rows);
      for (int64_t i = 0; i < rows.size(0); ++i) {
        use(first + i, rows.const_data_ptr<T>() + i * classes, p.const_data_ptr<T>() + i * classes);
      }
    }
  });
}

}  // namespace settrain
