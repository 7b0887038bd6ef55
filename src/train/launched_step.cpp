#include "src/train/launched_step.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace settrain {

StepResult& StepResult::operator+=(const StepResult& other) {
  loss_sum += other.loss_sum;
  correct += other.correct;
  count += other.count;
  measured.resize(std::max(measured.size(), other.measured.size()));
  for (size_t i = 0; i < other.measured.size(); ++i) measured[i] += other.measured[i];
  return *this;
}

LaunchedStep::LaunchedStep(const at::Tensor& sums, int64_t count, Explain explain)
    : count_(count), sums_(sums.to(at::kCPU, /*non_blocking=*/true)), explain_(std::move(explain)) {
  if (sums.is_cpu()) return;
  copied_.emplace(sums.device().type());
  copied_->record(c10::impl::VirtualGuardImpl(sums.device().type()).getStream(sums.device()));
}

StepResult LaunchedStep::result() const {
  StepResult result;
  if (count_ == 0) return result;
  if (copied_) copied_->synchronize();
  const double* row = sums_.const_data_ptr<double>();
  const int64_t columns = sums_.size(1);
  for (int64_t part = 0; part < sums_.size(0); ++part, row += columns) {
    if (!std::isfinite(row[0])) explain_(static_cast<size_t>(part));
    result += {row[0], static_cast<int64_t>(row[1]), 0, {row + 2, row + columns}};
  }
  result.count = count_;
  return result;
}

}  // namespace settrain
