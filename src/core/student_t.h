// Student's t distribution: how wide an interval for a mean has to be.
#pragma once

#include <cstdint>

namespace settrain {

/// P(|T| <= t) for Student's t with `degrees` of freedom, `t` >= 0: Abramowitz and Stegun 1964, eq. 26.7.3 and 26.7.4,
/// finite sums of positive terms.
double student_t_probability(double t, int64_t degrees);

/// The t with P(|T| <= t) = `confidence`: 4.302652729749 for 0.95 and 2 degrees of freedom. Right to 1e-9 of its value.
/// Time grows with `degrees`. Throws std::invalid_argument unless 0 < confidence < 1 and degrees >= 1.
double student_t_quantile(double confidence, int64_t degrees);

}  // namespace settrain
