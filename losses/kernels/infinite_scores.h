// What kernels that take differences of scores make of infinite ones. Seen by CUDA too.
#pragma once

namespace settrain {

/// Stands for an infinite score, since differences of infinities are not numbers. Sums and differences of a few stay
/// finite (below 1.8e308), and no float32 score is as large.
inline constexpr double kInfiniteScore = 1e300;

/// A result beyond it comes from an infinite score, less what rounding and other scores take from it.
inline constexpr double kInfiniteResult = 1e290;

}  // namespace settrain
