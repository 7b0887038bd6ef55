#include "losses/kernels/cpu/lanes.h"
#include "losses/kernels/cpu/select_rank.h"
#include "losses/kernels/noised_kernels.h"

namespace settrain::SETTRAIN_INSTRUCTION_SET {
namespace {

// {0, 1, 2, ..., 15}.
SETTRAIN_ALWAYS_INLINE Words lane_numbers() {
  constexpr uint32_t numbers[kLanes] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  return Words::load(numbers);
}

// normals[draw] of the draws [4 * index, 4 * index + kDraws) of these classes, laid out as noise_word() says.
template <int kDraws>
SETTRAIN_ALWAYS_INLINE void normals_of(const NoiseCounter& counter, uint32_t index, Words classes,
                                       Floats (&normals)[kDraws]) {
  constexpr uint32_t kShift = kDraws == 1 ? 2 : kDraws == 2 ? 1 : 0;  // a block serves 1 << kShift classes
  const auto words = philox<LaneArithmetic>(
      {{classes >> kShift, Words(index), Words(counter.position), Words(counter.step)}}, counter.key);
  const auto odd = bits_as<int32_t>(classes << 31u) >> 31;
  const auto word_of = [&](int draw) SETTRAIN_INLINE_LAMBDA {
    if constexpr (kDraws == 1) {
      const auto upper = bits_as<int32_t>(classes << 30u) >> 31;
      return choose(upper, choose(odd, words.word[3], words.word[2]), choose(odd, words.word[1], words.word[0]));
    } else if constexpr (kDraws == 2) {
      return choose(odd, words.word[2 + draw], words.word[draw]);
    } else {
      return words.word[draw];
    }
  };
  for (int draw = 0; draw < kDraws; ++draw) normals[draw] = normal_of<LaneArithmetic>(word_of(draw));
}

// So many neighbouring classes fill the blocks of all lanes.
template <int kDraws>
constexpr int kClassesAtOnce = kDraws == 1   ? 64
                               : kDraws == 2 ? 32
                                             : 16;

// The same for kClassesAtOnce classes from `first` on, a multiple of 4: normals[draw][i] of class first + i.
template <int kDraws>
SETTRAIN_ALWAYS_INLINE void normals_from(const NoiseCounter& counter, uint32_t index, uint32_t first,
                                         float (&normals)[kDraws][kClassesAtOnce<kDraws>]) {
  constexpr int kClasses = kClassesAtOnce<kDraws> / kLanes;
  const auto words = philox<LaneArithmetic>(
      {{lane_numbers() + first / kClasses, Words(index), Words(counter.position), Words(counter.step)}}, counter.key);
  for (int i = 0; i < kClasses; ++i) {
    for (int draw = 0; draw < kDraws; ++draw) {
      float of_lanes[kLanes];
      normal_of<LaneArithmetic>(words.word[i * kDraws + draw]).store(of_lanes);
      for (int lane = 0; lane < kLanes; ++lane) normals[draw][lane * kClasses + i] = of_lanes[lane];
    }
  }
}

// Calls f with the constant `draws`, from 1 to 4.
template <class F>
SETTRAIN_ALWAYS_INLINE void with_constant(uint32_t draws, const F& f) {
  switch (draws) {
    case 1:
      return f(std::integral_constant<int, 1>());
    case 2:
      return f(std::integral_constant<int, 2>());
    case 3:
      return f(std::integral_constant<int, 3>());
    default:
      return f(std::integral_constant<int, 4>());
  }
}

template <int kDraws>
SETTRAIN_ALWAYS_INLINE void fill_draws(const NoiseCounter& counter, uint32_t index, int64_t classes, float* rows) {
  constexpr int64_t kAtOnce = kClassesAtOnce<kDraws>;
  for (int64_t begin = 0; begin < classes; begin += kAtOnce) {
    const int64_t count = classes - begin < kAtOnce ? classes - begin : kAtOnce;
    float normals[kDraws][kAtOnce];
    normals_from<kDraws>(counter, index, static_cast<uint32_t>(begin), normals);
    for (int draw = 0; draw < kDraws; ++draw) {
      for (int64_t i = 0; i < count; ++i) rows[draw * classes + begin + i] = normals[draw][i];
    }
  }
}

// Memory of a thread, for one row at a time.
struct Scratch {
  int64_t stride;    // classes, rounded up so that kernels may write whole lanes past the end
  float* scores;     // [stride] of the row, filled up with -infinity
  float* maxima;     // [stride]
  int32_t* list;     // [stride] classes that are drawn
  float* perturbed;  // [4][stride] of the list, a row a draw, filled up with -infinity to whole lanes
  int64_t bytes;     // of all these

  Scratch(void* memory, int64_t classes) : stride(round_up(classes, 64) + kLanes) {
    Carver carver{static_cast<char*>(memory)};
    scores = carver.take<float>(stride);
    maxima = carver.take<float>(stride);
    list = carver.take<int32_t>(stride);
    perturbed = carver.take<float>(4 * stride);
    bytes = carver.bytes;
  }
};

struct Row {
  const NoisedHinge& hinge;
  const float* noise;  // [draws, classes] or null
  NoiseCounter counter;
  Scratch scratch;
};

// A number that at least k + 1 scores reach, and few more. Classes whose numbers are equal modulo the number of groups
// form a group, and at least k + 1 maxima of groups reach the number.
SETTRAIN_ALWAYS_INLINE float lower_bound(const Row& row) {
  const int64_t classes = round_up(row.hinge.classes, kLanes), rank = row.hinge.k + 1;
  // With eight groups for each of the k + 1 best classes, these mostly lie in different groups.
  int64_t groups = round_up(8 * rank, kLanes);
  if (groups > classes) groups = classes;
  float* maxima = row.scratch.maxima;
  for (int64_t g = 0; g < groups; g += kLanes) Floats::load(row.scratch.scores + g).store(maxima + g);
  for (int64_t begin = groups; begin < classes; begin += groups) {
    const int64_t count = classes - begin < groups ? classes - begin : groups;
    for (int64_t g = 0; g < count; g += kLanes) {
      larger(Floats::load(maxima + g), Floats::load(row.scratch.scores + begin + g)).store(maxima + g);
    }
  }
  return value_of_rank(maxima, groups, rank, -kInfinity, /*slack=*/1 + rank / 4);
}

// Appends the classes whose largest possible perturbed score, with this epsilon, reaches `from`, without those whose
// score reaches `leave_out`, and returns how many there are now. NaN leaves out none.
SETTRAIN_ALWAYS_INLINE int64_t append_classes(const Row& row, float epsilon, float from, float leave_out,
                                              int64_t size) {
  int32_t* list = row.scratch.list;
  const auto append = [&](int64_t first, uint32_t hits) SETTRAIN_INLINE_LAMBDA {
    for (; hits; hits &= hits - 1) list[size++] = static_cast<int32_t>(first) + __builtin_ctz(hits);
  };
  for (int64_t j = 0; j < row.hinge.classes; j += kLanes) {
    const Floats score = Floats::load(row.scratch.scores + j);
    const Floats most = LaneArithmetic::fma(Floats(epsilon), Floats(kMaxNormal), score);
    append(j, bits_of(most >= from) & ~bits_of(score >= leave_out));
  }
  // -infinity reaches itself, beyond the last class too.
  while (size > 0 && list[size - 1] >= row.hinge.classes) --size;
  return size;
}

// The perturbed scores of list[begin .. end), in kDraws draws of the block `index`.
template <int kDraws>
SETTRAIN_ALWAYS_INLINE void draw_list(const Row& row, uint32_t index, int64_t begin, int64_t end) {
  const Scratch& scratch = row.scratch;
  for (int64_t first = begin; first < end; first += kLanes) {
    for (int64_t i = end; i < first + kLanes; ++i) scratch.list[i] = 0;
    float scores[kLanes];
    for (int i = 0; i < kLanes; ++i) scores[i] = scratch.scores[scratch.list[first + i]];
    const Words classes = bits_as<uint32_t>(Ints::load(scratch.list + first));
    Floats normals[kDraws];
    normals_of<kDraws>(row.counter, index, classes, normals);
    for (int draw = 0; draw < kDraws; ++draw) {
      LaneArithmetic::fma(Floats(row.hinge.epsilon), normals[draw], Floats::load(scores))
          .store(scratch.perturbed + draw * scratch.stride + first);
    }
  }
  for (int draw = 0; draw < kDraws; ++draw) {
    for (int i = 0; i < kLanes; ++i) scratch.perturbed[draw * scratch.stride + end + i] = -kInfinity;
  }
}

// The same for all classes.
template <int kDraws>
SETTRAIN_ALWAYS_INLINE void draw_all(const Row& row, uint32_t index) {
  const Scratch& scratch = row.scratch;
  const int64_t classes = row.hinge.classes;
  constexpr int kAtOnce = kClassesAtOnce<kDraws>;
  for (int64_t begin = 0; begin < classes; begin += kAtOnce) {
    float normals[kDraws][kAtOnce];
    if (!row.noise) normals_from<kDraws>(row.counter, index, static_cast<uint32_t>(begin), normals);
    for (int draw = 0; draw < kDraws; ++draw) {
      for (int64_t i = 0; row.noise && i < kAtOnce; ++i) {
        normals[draw][i] = begin + i < classes ? row.noise[(4 * index + draw) * classes + begin + i] : 0;
      }
      for (int i = 0; i < kAtOnce; i += kLanes) {
        LaneArithmetic::fma(Floats(row.hinge.epsilon), Floats::load(normals[draw] + i),
                            Floats::load(scratch.scores + begin + i))
            .store(scratch.perturbed + draw * scratch.stride + begin + i);
      }
    }
  }
  for (int64_t j = 0; j < scratch.stride; ++j) scratch.list[j] = static_cast<int32_t>(j);
}

// Totals over draws.
struct Drawn {
  float sum;        // of the perturbed scores of rank k + 1
  int64_t normals;  // how many were made
};

template <int kDraws>
SETTRAIN_ALWAYS_INLINE void add_draws(const Row& row, uint32_t index, float bound, int32_t* chosen, Drawn& drawn) {
  const Scratch& scratch = row.scratch;
  const int64_t rank = row.hinge.k + 1;
  float low[kDraws];
  for (float& l : low) l = -kInfinity;
  int64_t size = row.hinge.classes;
  if (row.hinge.prune) {
    // The best classes' own draws are a lower bound of the perturbed score of the rank.
    const int64_t best = append_classes(row, 0, bound, __builtin_nanf(""), 0);
    draw_list<kDraws>(row, index, 0, best);
    float least = kInfinity;
    for (int draw = 0; draw < kDraws; ++draw) {
      low[draw] = value_of_rank(scratch.perturbed + draw * scratch.stride, round_up(best, kLanes), rank, -kInfinity, 0);
      least = low[draw] < least ? low[draw] : least;
    }
    // Further classes that a normal may lift there: none exceeds kMaxNormal, and the fma is monotone.
    size = append_classes(row, row.hinge.epsilon, least, bound, best);
    // Neighbours share blocks of random words: beyond half of the classes, drawing for all costs no more.
    if (size > row.hinge.classes / 2) size = row.hinge.classes;
    if (size < row.hinge.classes) draw_list<kDraws>(row, index, best, size);
  }
  if (size == row.hinge.classes) draw_all<kDraws>(row, index);
  for (int draw = 0; draw < kDraws; ++draw) {
    const float* values = scratch.perturbed + draw * scratch.stride;
    const float value = value_of_rank(values, round_up(size, kLanes), rank, low[draw], 0);
    const int64_t place = place_of_rank(values, scratch.list, round_up(size, kLanes), rank, value);
    chosen[draw] = scratch.list[place];
    drawn.sum = drawn.sum + values[place];
  }
  drawn.normals += kDraws * size;
}

SETTRAIN_ALWAYS_INLINE Drawn draw_row(const Row& row, int32_t* chosen) {
  const auto draws = static_cast<uint32_t>(row.hinge.draws);
  const float bound = lower_bound(row);
  Drawn drawn{0, 0};
  for (uint32_t draw = 0; draw < draws; draw += 4) {
    const DrawBlock block = draw_block(draw, draws);
    with_constant(block.draws, [&](auto draws_of_block) SETTRAIN_INLINE_LAMBDA {
      add_draws<draws_of_block>(row, block.index, bound, chosen + draw, drawn);
    });
  }
  return drawn;
}

}  // namespace

void fill_noise_row(const NoiseCounter& counter, int64_t draws, int64_t classes, float* row) {
  for (int64_t draw = 0; draw < draws; draw += 4) {
    const DrawBlock block = draw_block(static_cast<uint32_t>(draw), static_cast<uint32_t>(draws));
    with_constant(block.draws, [&](auto draws_of_block) SETTRAIN_INLINE_LAMBDA {
      fill_draws<draws_of_block>(counter, block.index, classes, row + draw * classes);
    });
  }
}

int64_t noised_hinge_scratch(const NoisedHinge& hinge) {
  return Scratch(nullptr, hinge.classes).bytes;
}

void noised_hinge_rows(const NoisedHinge& hinge, int64_t begin, int64_t end, void* scratch, float* losses,
                       int32_t* chosen, float* drawn_classes) {
  for (int64_t i = begin; i < end; ++i) {
    Row row{hinge, hinge.noise ? hinge.noise + i * hinge.draws * hinge.classes : nullptr, hinge.first,
            Scratch(scratch, hinge.classes)};
    row.counter.position += static_cast<uint32_t>(i);
    Drawn drawn{__builtin_nanf(""), 0};
    if (copy_row(hinge.scores + i * hinge.classes, hinge.classes, row.scratch.stride, row.scratch.scores)) {
      drawn = draw_row(row, chosen + i * hinge.draws);
    } else {
      for (int64_t draw = 0; draw < hinge.draws; ++draw) chosen[i * hinge.draws + draw] = 0;
    }
    const float smoothed = drawn.sum / static_cast<float>(hinge.draws);
    const float margin = hinge.margins ? hinge.margins[i] : hinge.margin;
    const float violation = (smoothed - hinge.scores[i * hinge.classes + hinge.labels[i]] + margin) * hinge.factor;
    losses[i] = violation < 0 ? 0 : violation;  // NaN stays
    if (drawn_classes) drawn_classes[i] = static_cast<float>(drawn.normals) / static_cast<float>(hinge.draws);
  }
}

}  // namespace settrain::SETTRAIN_INSTRUCTION_SET
