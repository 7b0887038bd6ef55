#include "losses/kernels/cpu/exponential.h"
#include "losses/kernels/smooth_kernels.h"

// The loss is made of elementary symmetric polynomials sigma_i of e_j = exp(x_j), x_j = s_j/(k tau), over the classes
// but the label. With x_[1] >= x_[2] >= ... their order,
//
//     a_i = sigma_i / exp(x_[1] + ... + x_[i])
//
// lies between 1 and the number of sets of i classes, whatever tau is. The k classes of the highest scores are taken in
// that order, so that no exponent is positive; every other class j has the weight w_j = exp(x_j - x_[k]) <= 1. They are
// multiplied in eight sequences, a lane each: class 0, 8, 16, ..., class 1, 9, 17, .... A class' share of the sets is
// the product of the classes before it in its sequence and of all others, so that all terms are positive.
namespace settrain::SETTRAIN_INSTRUCTION_SET {
namespace {

// Memory of a thread, for one row at a time. steps = classes / 8, rounded up.
struct Workspace {
  int64_t k, steps;
  double* x;         // [steps * 8]
  double* weights;   // [steps * 8] w; 0 for the label, for the highest and beyond the last class
  double* before;    // [steps + 1][k + 1][8] products of the classes before, by degree
  double* lanes;     // [3][9][k + 1] products of lanes
  double* after;     // [k + 1][8] products of all others
  double* ratio;     // [k][k] ratio[q k + i] = exp(x_[q+1] - x_[i+1]), i <= q
  double* to_last;   // [k + 1][k + 1] to_last[d (k + 1) + m] = exp(m x_[k] - x_[d-m+1] - ... - x_[d])
  double* highest;   // [k + 1] a of the highest classes alone
  double* with_one;  // [k + 1] a of their sets that hold a given one
  int64_t* top;      // [k] the classes of the highest scores, in order
  int64_t bytes;     // of all these

  Workspace(void* memory, int64_t classes, int64_t set_size) : k(set_size), steps(round_up(classes, 8) / 8) {
    Carver carver{static_cast<char*>(memory)};
    x = carver.take<double>(steps * 8);
    weights = carver.take<double>(steps * 8);
    before = carver.take<double>((steps + 1) * (k + 1) * 8);
    lanes = carver.take<double>(27 * (k + 1));
    after = carver.take<double>((k + 1) * 8);
    ratio = carver.take<double>(k * k);
    to_last = carver.take<double>((k + 1) * (k + 1));
    highest = carver.take<double>(k + 1);
    with_one = carver.take<double>(k + 1);
    top = carver.take<int64_t>(k);
    bytes = carver.bytes;
  }
};

// Fills x. False where a score is NaN.
template <class T>
SETTRAIN_ALWAYS_INLINE bool take_scores(const T* scores, int64_t classes, double scale, const Workspace& work) {
  bool finite = true;
  for (int64_t j = 0; j < work.steps * 8; ++j) {
    double score = j < classes ? static_cast<double>(scores[j]) : -kInfiniteScore;
    finite = finite & (score == score);
    score = score > kInfiniteScore ? kInfiniteScore : score;
    score = score < -kInfiniteScore ? -kInfiniteScore : score;
    work.x[j] = score * scale;
  }
  return finite;
}

// The k classes of the highest x but the label, in descending order, of equal ones the lower class first.
SETTRAIN_ALWAYS_INLINE void find_highest(int64_t classes, int64_t label, const Workspace& work) {
  int64_t found = 0;
  for (int64_t j = 0; j < classes; ++j) {
    if (j == label || (found == work.k && !(work.x[j] > work.x[work.top[found - 1]]))) continue;
    if (found < work.k) ++found;
    int64_t place = found - 1;
    for (; place > 0 && work.x[j] > work.x[work.top[place - 1]]; --place) work.top[place] = work.top[place - 1];
    work.top[place] = j;
  }
}

SETTRAIN_ALWAYS_INLINE void weigh(int64_t classes, int64_t label, const Workspace& work) {
  const Doubles last(work.x[work.top[work.k - 1]]);
  for (int64_t t = 0; t < work.steps; ++t) {
    exponential(smaller(Doubles::load(work.x + 8 * t) - last, Doubles(0.0))).store(work.weights + 8 * t);
  }
  for (int64_t j = classes; j < work.steps * 8; ++j) work.weights[j] = 0;
  for (int64_t r = 0; r < work.k; ++r) work.weights[work.top[r]] = 0;
  work.weights[label] = 0;
}

// Differences between the highest, as factors of at most 1, and the a of their own sets.
SETTRAIN_ALWAYS_INLINE void combine_highest(const Workspace& work) {
  const int64_t k = work.k;
  for (int64_t q = 0; q < k; ++q) {
    const double step = q == 0 ? 1 : __builtin_exp(work.x[work.top[q]] - work.x[work.top[q - 1]]);
    for (int64_t i = 0; i < q; ++i) work.ratio[q * k + i] = work.ratio[(q - 1) * k + i] * step;
    work.ratio[q * k + q] = 1;
  }
  for (int64_t degree = 0; degree <= k; ++degree) {
    double* const factors = work.to_last + degree * (k + 1);
    factors[0] = 1;
    for (int64_t m = 1; m <= degree; ++m) factors[m] = factors[m - 1] * work.ratio[(k - 1) * k + degree - m];
  }
  for (int64_t i = 0; i <= k; ++i) work.highest[i] = i == 0;
  for (int64_t q = 0; q < k; ++q) {
    for (int64_t i = q + 1; i >= 1; --i) work.highest[i] += work.highest[i - 1] * work.ratio[q * k + i - 1];
  }
}

// The a of sets of the highest with the r-th of them.
SETTRAIN_ALWAYS_INLINE void combine_highest_with(int64_t r, const Workspace& work) {
  const int64_t k = work.k;
  double* const a = work.with_one;
  for (int64_t i = 0; i <= k; ++i) a[i] = i == 0;
  for (int64_t q = 0; q < k; ++q) {
    for (int64_t i = q + 1; i >= 1; --i) {
      a[i] = (q == r ? 0 : a[i]) + a[i - 1] * work.ratio[q * k + i - 1];
    }
    if (q == r) a[0] = 0;
  }
}

SETTRAIN_ALWAYS_INLINE void multiply_before(const Workspace& work) {
  const int64_t stride = (work.k + 1) * 8;
  for (int64_t i = 0; i <= work.k; ++i) Doubles(i == 0 ? 1.0 : 0.0).store(work.before + 8 * i);
  for (int64_t t = 0; t < work.steps; ++t) {
    const double* const now = work.before + t * stride;
    double* const next = work.before + (t + 1) * stride;
    const Doubles weight = Doubles::load(work.weights + 8 * t);
    Doubles lower = Doubles::load(now);
    lower.store(next);
    for (int64_t i = 1; i <= work.k; ++i) {
      const Doubles own = Doubles::load(now + 8 * i);
      LaneArithmetic::fma(weight, lower, own).store(next + 8 * i);
      lower = own;
    }
  }
}

// product[0 .. k] = a * b, cut off above degree k.
SETTRAIN_ALWAYS_INLINE void multiply(const double* a, const double* b, int64_t k, double* product) {
  for (int64_t i = 0; i <= k; ++i) {
    double sum = 0;
    for (int64_t m = 0; m <= i; ++m) sum += a[i - m] * b[m];
    product[i] = sum;
  }
}

// The coefficient of `degree` of all classes' product, of which `rest` are the classes below the highest.
SETTRAIN_ALWAYS_INLINE double with_highest(const double* highest, const double* rest, int64_t degree,
                                           const Workspace& work) {
  const double* const factors = work.to_last + degree * (work.k + 1);
  double sum = 0;
  for (int64_t m = 0; m <= degree; ++m) sum += highest[degree - m] * factors[m] * rest[m];
  return sum;
}

// Fills `after`: for each lane, the product of the other lanes and of the highest. Returns the product of all lanes.
SETTRAIN_ALWAYS_INLINE const double* multiply_lanes(const Workspace& work) {
  const int64_t size = work.k + 1;
  const double* const last = work.before + work.steps * size * 8;
  double *const own = work.lanes, *const left = own + 9 * size, *const right = left + 9 * size;
  for (int64_t lane = 0; lane < 8; ++lane) {
    for (int64_t i = 0; i < size; ++i) own[lane * size + i] = last[8 * i + lane];
  }
  for (int64_t i = 0; i < size; ++i) left[i] = right[8 * size + i] = i == 0;
  for (int64_t lane = 0; lane < 8; ++lane) {
    multiply(left + lane * size, own + lane * size, work.k, left + (lane + 1) * size);
  }
  for (int64_t lane = 7; lane >= 0; --lane) {
    multiply(right + (lane + 1) * size, own + lane * size, work.k, right + lane * size);
  }
  double* const others = own + 8 * size;
  for (int64_t lane = 0; lane < 8; ++lane) {
    multiply(left + lane * size, right + (lane + 1) * size, work.k, others);
    for (int64_t i = 0; i < size; ++i) work.after[8 * i + lane] = with_highest(work.highest, others, i, work);
  }
  return left + 8 * size;
}

// Sums over the sets of a row.
struct Sums {
  const double* rest;      // [k + 1] product of the classes below the highest
  double larger, smaller;  // a_k and a_{k-1} of all classes
  double slope;            // derivative of the loss by a score whose share of the sets is 1
};

// The gradient of the classes below the highest.
template <class T>
SETTRAIN_ALWAYS_INLINE void differentiate_rest(const Sums& sums, int64_t classes, const Workspace& work, T* gradient) {
  const int64_t k = work.k, stride = (k + 1) * 8;
  const double* const factors = work.to_last + (k - 1) * (k + 1);
  const double* const factors_below = k > 1 ? work.to_last + (k - 2) * (k + 1) : factors;
  const Doubles share(sums.slope / sums.larger);
  const Doubles share_below(k > 1 ? sums.slope / sums.smaller * work.ratio[(k - 1) * k + k - 2] : 0);
  for (int64_t t = work.steps - 1; t >= 0; --t) {
    const double* const before = work.before + t * stride;
    Doubles without = Doubles::load(before) * Doubles::load(work.after + 8 * (k - 1)), without_below(0.0);
    for (int64_t m = 1; m < k; ++m) {
      const Doubles here = Doubles::load(before + 8 * m);
      without = LaneArithmetic::fma(here * factors[m], Doubles::load(work.after + 8 * (k - 1 - m)), without);
    }
    for (int64_t m = 0; m + 1 < k; ++m) {
      const Doubles here = Doubles::load(before + 8 * m);
      without_below =
          LaneArithmetic::fma(here * factors_below[m], Doubles::load(work.after + 8 * (k - 2 - m)), without_below);
    }
    const Doubles weight = Doubles::load(work.weights + 8 * t);
    const Doubles slope = weight * (without * share - without_below * share_below);
    if (8 * t + 8 <= classes) {
      store_doubles(slope, gradient + 8 * t);
    } else {
      T tail[8];
      store_doubles(slope, tail);
      for (int64_t j = 8 * t; j < classes; ++j) gradient[j] = tail[j - 8 * t];
    }
    for (int64_t i = k - 1; i >= 1; --i) {
      double* const after = work.after + 8 * i;
      LaneArithmetic::fma(weight * work.ratio[(k - 1) * k + i - 1], Doubles::load(after - 8), Doubles::load(after))
          .store(after);
    }
  }
}

template <class T>
SETTRAIN_ALWAYS_INLINE void differentiate_highest(const Sums& sums, const Workspace& work, T* gradient) {
  for (int64_t r = 0; r < work.k; ++r) {
    combine_highest_with(r, work);
    const double in_larger = with_highest(work.with_one, sums.rest, work.k, work) / sums.larger;
    const double in_smaller = with_highest(work.with_one, sums.rest, work.k - 1, work) / sums.smaller;
    gradient[work.top[r]] = static_cast<T>(sums.slope * (in_larger - in_smaller));
  }
}

}  // namespace

int64_t smoothed_hinge_workspace(int64_t classes, int64_t k) {
  return Workspace(nullptr, classes, k).bytes;
}

template <class T>
void smoothed_hinge_rows(const SmoothedHinge<T>& hinge, int64_t begin, int64_t end, void* workspace, T* losses,
                         T* gradient) {
  const Workspace work(workspace, hinge.classes, hinge.k);
  const double scale = 1 / (static_cast<double>(hinge.k) * hinge.tau);
  for (int64_t i = begin; i < end; ++i) {
    T* const row = gradient ? gradient + i * hinge.classes : nullptr;
    const int64_t label = hinge.labels[i];
    if (!take_scores(hinge.scores + i * hinge.classes, hinge.classes, scale, work)) {
      losses[i] = static_cast<T>(__builtin_nan(""));
      for (int64_t j = 0; row && j < hinge.classes; ++j) row[j] = losses[i];
      continue;
    }
    find_highest(hinge.classes, label, work);
    weigh(hinge.classes, label, work);
    combine_highest(work);
    multiply_before(work);
    const double* const rest = multiply_lanes(work);
    Sums sums{rest, with_highest(work.highest, rest, hinge.k, work),
              with_highest(work.highest, rest, hinge.k - 1, work), 0};
    const double z = __builtin_log(sums.larger) - __builtin_log(sums.smaller) +
                     (work.x[work.top[hinge.k - 1]] - work.x[label]) + hinge.alpha / hinge.tau;
    const double small = __builtin_exp(z < 0 ? z : -z);
    const double loss = hinge.tau * ((z < 0 ? 0 : z) + __builtin_log1p(small));
    losses[i] = static_cast<T>(loss < kInfiniteResult ? loss : __builtin_inf());
    sums.slope = (z < 0 ? small : 1) / (1 + small) / static_cast<double>(hinge.k);
    if (!row) continue;
    differentiate_rest(sums, hinge.classes, work, row);
    differentiate_highest(sums, work, row);
    row[label] = static_cast<T>(-sums.slope);
  }
}

template void smoothed_hinge_rows<float>(const SmoothedHinge<float>&, int64_t, int64_t, void*, float*, float*);
template void smoothed_hinge_rows<double>(const SmoothedHinge<double>&, int64_t, int64_t, void*, double*, double*);

}  // namespace settrain::SETTRAIN_INSTRUCTION_SET
