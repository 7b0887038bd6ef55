#include "losses/kernels/cpu/exponential.h"
#include "losses/kernels/cpu/select_rank.h"
#include "losses/kernels/smooth_kernels.h"

// N(t), the number of classes with s_j + epsilon z_j > t, is a sum of independent events. The product of the
// polynomials (1 - p_j) + p_j X has its distribution as coefficients. Eight points t are computed at a time, a lane
// each, from those classes whose event is neither certain nor impossible there. A class' gradient needs the product
// without it: the product of the classes before it and of those after it, so that nothing is divided or subtracted.
namespace settrain::SETTRAIN_INSTRUCTION_SET {
namespace {

// The normal distribution's tails and density.
struct NormalTail {
  Doubles upper, lower;  // P(Z > z), P(Z <= z)
  Doubles bell;          // exp(-z^2/2)
};

/// Each tail to about 3e-14 of itself (3e-15 near 0), down to 1e-30. z may be infinite.
SETTRAIN_ALWAYS_INLINE NormalTail normal_tail(Doubles z) {
  // P(Z > z) = exp(-z^2/2) f((z - 4)/(z + 4))/(z + 4) for z in [0, 12], by scripts/fit_normal.py.
  constexpr double kCoefficients[] = {0,
                                      -1.50739863443501261e-08,
                                      -6.06492419323464184e-09,
                                      3.40462431420544602e-07,
                                      9.33237950942176809e-07,
                                      -7.30721583987717172e-07,
                                      -5.91819006799721190e-06,
                                      7.59464652035684002e-07,
                                      3.51555827312191794e-05,
                                      -1.91685791289675296e-06,
                                      -2.31098485969602534e-04,
                                      1.33345192641365253e-04,
                                      1.63081895806877798e-03,
                                      -3.47969240979055256e-03,
                                      -7.54018900127269819e-03,
                                      6.03965748915819556e-02,
                                      -1.86521857958610315e-01,
                                      3.87137400742219473e-01,
                                      -6.07896641971899965e-01,
                                      7.55285130415750960e-01};
  const Doubles size = smaller(larger(z, Doubles(0.0) - z), Doubles(40.0));
  const Doubles inverse = Doubles(1.0) / (size + 4.0), u = (size - 4.0) * inverse;
  const Doubles bell = exponential(size * size * -0.5);
  const Doubles tail = bell * polynomial_at(u, kCoefficients) * inverse, rest = Doubles(1.0) - tail;
  const auto positive = z >= Doubles(0.0);
  return {choose(positive, tail, rest), choose(positive, rest, tail), bell};
}

// For results of type T: a probability that counts as 0, and the number of standard deviations beyond which a class'
// probability does.
template <class T>
constexpr double kNothing = sizeof(T) == 4 ? 1e-10 : 1e-15;
template <class T>
constexpr double kTail = sizeof(T) == 4 ? 6.5 : 8.5;

constexpr int64_t kPoints = 64;  // intervals of the grid on which the window is looked for

// Memory of a thread, for one row at a time.
template <class T>
struct Workspace {
  int64_t size;      // classes, rounded up to whole lanes
  T* scores;         // [size] filled up with -infinity
  double* x;         // [size] scores less that of the rank
  double* slopes;    // [size][8] the part of a listed class' gradient that comes from the points of each lane
  double* chances;   // [size][3][8] of a listed class: P, 1 - P and density
  double* products;  // [size + 1][rank][8] of the listed classes before
  double* after;     // [rank][8]
  int32_t* list;     // [size] of classes
  int32_t* nearby;   // [size] places in the list
  int64_t bytes;     // of all these

  Workspace(void* memory, int64_t classes, int64_t rank) : size(round_up(classes, 16)) {
    Carver carver{static_cast<char*>(memory)};
    scores = carver.take<T>(size);
    x = carver.take<double>(size);
    slopes = carver.take<double>(size * 8);
    chances = carver.take<double>(size * 3 * 8);
    products = carver.take<double>((size + 1) * rank * 8);
    after = carver.take<double>(rank * 8);
    list = carver.take<int32_t>(size);
    nearby = carver.take<int32_t>(size);
    bytes = carver.bytes;
  }
};

template <class T>
struct Row {
  const ExactTopkBatch<T>& batch;
  Workspace<T> work;
};

// Fills x. Returns the score of the rank, NaN where a score is NaN.
template <class T>
SETTRAIN_ALWAYS_INLINE double take_scores(const Row<T>& row, const T* scores) {
  const Workspace<T>& work = row.work;
  if (!copy_row(scores, row.batch.classes, work.size, work.scores)) return __builtin_nan("");
  const auto within = [](Doubles score) SETTRAIN_INLINE_LAMBDA {
    return larger(smaller(score, Doubles(kInfiniteScore)), Doubles(-kInfiniteScore));
  };
  const T center = value_of_rank<T>(work.scores, work.size, row.batch.rank, static_cast<T>(-kInfinity), 0);
  const Doubles finite_center = within(Doubles(center));
  for (int64_t j = 0; j < work.size; j += 8) {
    (within(load_doubles(work.scores + j)) - finite_center).store(work.x + j);
  }
  for (int64_t j = row.batch.classes; j < work.size; ++j) work.x[j] = -__builtin_inf();  // is never listed
  return largest_of(finite_center);
}

// Lists the classes with x in (from, to], and returns how many; `above`: how many have more.
template <class T>
SETTRAIN_ALWAYS_INLINE int64_t list_classes(const Row<T>& row, double from, double to, int64_t& above) {
  int64_t listed = 0;
  above = 0;
  for (int64_t first = 0; first < row.work.size; first += 8) {
    const Doubles x = Doubles::load(row.work.x + first);
    const uint32_t higher = bits_of(x > Doubles(to));
    above += __builtin_popcount(higher);
    for (uint32_t hits = bits_of(x > Doubles(from)) & ~higher; hits; hits &= hits - 1) {
      row.work.list[listed++] = static_cast<int32_t>(first) + __builtin_ctz(hits);
    }
  }
  return listed;
}

// terms[0 .. rank) [8] are the coefficients of a polynomial at eight points. Sets it to 1.
SETTRAIN_ALWAYS_INLINE void set_to_one(double* terms, int64_t rank) {
  for (int64_t m = 0; m < rank; ++m) Doubles(m == 0 ? 1.0 : 0.0).store(terms + 8 * m);
}

// Multiplies it by lower + upper X.
SETTRAIN_ALWAYS_INLINE void multiply_by(double* terms, int64_t rank, Doubles upper, Doubles lower) {
  for (int64_t m = rank - 1; m >= 1; --m) {
    LaneArithmetic::fma(upper, Doubles::load(terms + 8 * m - 8), lower * Doubles::load(terms + 8 * m))
        .store(terms + 8 * m);
  }
  (lower * Doubles::load(terms)).store(terms);
}

SETTRAIN_ALWAYS_INLINE Doubles sum_of_terms(const double* terms, int64_t rank) {
  Doubles sum(0.0);
  for (int64_t m = 0; m < rank; ++m) sum = sum + Doubles::load(terms + 8 * m);
  return sum;
}

// P(N(t) < rank) at eight points, of the `listed` classes; `certain` more lie above.
template <class T>
SETTRAIN_ALWAYS_INLINE Doubles probability_of_fewer(const Row<T>& row, Doubles t, int64_t listed, int64_t certain) {
  const int64_t rank = row.batch.rank - certain;
  double* const terms = row.work.after;
  if (rank <= 0) return Doubles(0.0);
  set_to_one(terms, rank);
  for (int64_t i = 0; i < listed; ++i) {
    const double x = row.work.x[row.work.list[i]];
    const NormalTail chance = normal_tail((t - x) * (1 / row.batch.epsilon));
    multiply_by(terms, rank, chance.upper, chance.lower);
  }
  return sum_of_terms(terms, rank);
}

// The window in which that probability rises from 0 to 1, in steps of the grid from -(tail + 1) to tail + 1 standard
// deviations. The classes left out below the grid change the upper end by less than kNothing, and only make the window
// wider at its lower end.
struct Window {
  double low, high;
};

template <class T>
SETTRAIN_ALWAYS_INLINE Window find_window(const Row<T>& row) {
  constexpr double kStep = 2 * (kTail<T> + 1) / kPoints;
  const double step = kStep * row.batch.epsilon;
  const double lanes[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  int64_t certain = 0;
  const int64_t listed = list_classes(row, -kTail<T> * row.batch.epsilon, kInfiniteScore, certain);
  // How many of the points first, first + apart, ... come before the probability passes `least`.
  const auto points_before = [&](int64_t first, int64_t apart, double least, bool at_least) SETTRAIN_INLINE_LAMBDA {
    const Doubles t =
        (Doubles::load(lanes) * static_cast<double>(apart) + static_cast<double>(first - kPoints / 2)) * step;
    const Doubles fewer = probability_of_fewer(row, t, listed, certain);
    const auto before = at_least ? Doubles(least) >= fewer : Doubles(least) > fewer;
    return -sum_of(before);
  };
  // First every eighth point, then those between.
  const auto place = [&](double least, bool at_least) SETTRAIN_INLINE_LAMBDA {
    const int64_t coarse = 8 * points_before(0, 8, least, at_least);
    return coarse == 0 ? 0 : coarse - 8 + points_before(coarse - 8, 1, least, at_least);
  };
  const int64_t first = place(kNothing<T>, false) - 1, last = place(1 - kNothing<T>, true);
  return {static_cast<double>((first < 0 ? 0 : first) - kPoints / 2) * step,
          static_cast<double>(last - kPoints / 2) * step};
}

// Adds the part of eight nodes to the gradient of the listed classes. Returns their part of the integral of the
// probability that fewer than `rank` classes lie above; `certain` of these are not listed.
template <class T>
SETTRAIN_ALWAYS_INLINE double integrate(const Row<T>& row, Doubles t, Doubles weight, int64_t listed, int64_t certain) {
  const Workspace<T>& work = row.work;
  const double reach = kTail<T> * row.batch.epsilon, from = smallest_of(t) - reach, to = largest_of(t) + reach;
  int64_t nearby = 0;
  for (int64_t i = 0; i < listed; ++i) {
    const double x = work.x[work.list[i]];
    work.nearby[nearby] = static_cast<int32_t>(i);
    nearby += (x > from) & (x <= to);
    certain += x > to;
  }
  const int64_t rank = row.batch.rank - certain;
  if (rank <= 0) return 0;

  for (int64_t i = 0; i < nearby; ++i) {
    const NormalTail chance = normal_tail((t - work.x[work.list[work.nearby[i]]]) * (1 / row.batch.epsilon));
    chance.upper.store(work.chances + 24 * i);
    chance.lower.store(work.chances + 24 * i + 8);
    chance.bell.store(work.chances + 24 * i + 16);
  }
  set_to_one(work.products, rank);
  for (int64_t i = 0; i < nearby; ++i) {
    const Doubles upper = Doubles::load(work.chances + 24 * i), lower = Doubles::load(work.chances + 24 * i + 8);
    const double* const now = work.products + i * rank * 8;
    double* const next = work.products + (i + 1) * rank * 8;
    Doubles below = Doubles::load(now);
    (lower * below).store(next);
    for (int64_t m = 1; m < rank; ++m) {
      const Doubles own = Doubles::load(now + 8 * m);
      LaneArithmetic::fma(upper, below, lower * own).store(next + 8 * m);
      below = own;
    }
  }
  const Doubles fewer = sum_of_terms(work.products + nearby * rank * 8, rank);

  set_to_one(work.after, rank);
  for (int64_t i = nearby - 1; i >= 0; --i) {
    const double* const before = work.products + i * rank * 8;
    Doubles at_rank(0.0);
    for (int64_t m = 0; m < rank; ++m) {
      at_rank =
          LaneArithmetic::fma(Doubles::load(before + 8 * m), Doubles::load(work.after + 8 * (rank - 1 - m)), at_rank);
    }
    const Doubles upper = Doubles::load(work.chances + 24 * i), lower = Doubles::load(work.chances + 24 * i + 8);
    double* const slope = work.slopes + 8 * work.nearby[i];
    LaneArithmetic::fma(weight * Doubles::load(work.chances + 24 * i + 16), at_rank, Doubles::load(slope)).store(slope);
    multiply_by(work.after, rank, upper, lower);
  }
  return sum_of(weight * fewer);
}

// The value less the score of the rank; fills the gradient.
template <class T>
SETTRAIN_ALWAYS_INLINE double integrate_row(const Row<T>& row, T* gradient) {
  const ExactTopkBatch<T>& batch = row.batch;
  const Workspace<T>& work = row.work;
  const Window window = find_window(row);
  int64_t certain = 0;
  const double reach = kTail<T> * batch.epsilon;
  const int64_t listed = list_classes(row, window.low - reach, window.high + reach, certain);
  for (int64_t i = 0; i < listed; ++i) Doubles(0.0).store(work.slopes + 8 * i);
  const double half = (window.high - window.low) / 2, middle = window.low + half;
  double fewer = 0;
  for (int64_t first = 0; first < batch.num_nodes; first += 8) {
    double nodes[8], weights[8];
    for (int64_t i = 0; i < 8; ++i) {
      const bool is_one = first + i < batch.num_nodes;
      nodes[i] = batch.nodes[is_one ? first + i : batch.num_nodes - 1];
      weights[i] = is_one ? batch.weights[first + i] : 0;
    }
    fewer += integrate(row, Doubles::load(nodes) * half + middle, Doubles::load(weights) * half, listed, certain);
  }
  if (gradient) {
    constexpr double kDensityAtZero = 0.398942280401432678;
    for (int64_t j = 0; j < batch.classes; ++j) gradient[j] = 0;
    for (int64_t i = 0; i < listed; ++i) {
      gradient[work.list[i]] =
          static_cast<T>(sum_of(Doubles::load(work.slopes + 8 * i)) * (kDensityAtZero / batch.epsilon));
    }
  }
  return window.high - fewer;
}

}  // namespace

int64_t exact_topk_workspace(int64_t classes, int64_t rank) {
  return Workspace<double>(nullptr, classes, rank).bytes;
}

template <class T>
void exact_topk_rows(const ExactTopkBatch<T>& batch, int64_t begin, int64_t end, void* workspace, T* values,
                     T* gradient) {
  const Row<T> row{batch, Workspace<T>(workspace, batch.classes, batch.rank)};
  for (int64_t i = begin; i < end; ++i) {
    T* const gradient_of_row = gradient ? gradient + i * batch.classes : nullptr;
    const double center = take_scores(row, batch.scores + i * batch.classes);
    if (center != center) {
      values[i] = static_cast<T>(center);
      for (int64_t j = 0; gradient && j < batch.classes; ++j) gradient_of_row[j] = values[i];
      continue;
    }
    const double value = center + integrate_row(row, gradient_of_row);
    values[i] = static_cast<T>(value > kInfiniteResult    ? __builtin_inf()
                               : value < -kInfiniteResult ? -__builtin_inf()
                                                          : value);
  }
}

template void exact_topk_rows<float>(const ExactTopkBatch<float>&, int64_t, int64_t, void*, float*, float*);
template void exact_topk_rows<double>(const ExactTopkBatch<double>&, int64_t, int64_t, void*, double*, double*);

}  // namespace settrain::SETTRAIN_INSTRUCTION_SET
