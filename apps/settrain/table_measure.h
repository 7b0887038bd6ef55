// Tables of times and of stability, which are measured instead of trained.
#pragma once

#include "losses/loss.h"
#include "src/core/progress_bar.h"
#include "src/papers/table/filled_table.h"

namespace settrain {

/// Measures every cell of a table that has `measure`; rows and columns say by `let` what: algorithm, classes, dtype,
/// tau. Throws ConfigError where they do not, and Interrupted where a signal asks to stop.
FilledTable measure_table(const LossRegistry& registry, const Table& table, c10::Device device, ProgressBar& bar);

}  // namespace settrain
