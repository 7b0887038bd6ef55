#include "src/loader/sampler.h"

#include <algorithm>
#include <numeric>

#include "src/core/permutation.h"
#include "src/core/streams.h"

namespace settrain {
namespace {

// Blocks of the random words: 0 for the classes of the draws, then one a class for the order of its images.
constexpr uint32_t kClassOfADraw = 0, kOrderOfAClass = 1;

struct ClassImages {
  std::vector<int64_t> positions;  // in the split
  std::vector<int64_t> order;      // of this round through them
  int64_t drawn = 0;
};

std::vector<ClassImages> images_of_classes(const std::vector<int64_t>& labels) {
  std::vector<ClassImages> classes;
  for (size_t i = 0; i < labels.size(); ++i) {
    const auto label = static_cast<size_t>(labels[i]);
    if (label >= classes.size()) classes.resize(label + 1);
    classes[label].positions.push_back(static_cast<int64_t>(i));
  }
  return classes;
}

// The sums of the probabilities up to every class.
std::vector<double> cumulated(const std::vector<ClassImages>& classes, const Sampling& sampling, int64_t epoch) {
  std::vector<int64_t> counts;
  for (const ClassImages& images : classes) counts.push_back(std::ssize(images.positions));
  std::vector<double> sums = class_probabilities(sampling, counts, epoch);
  std::partial_sum(sums.begin(), sums.end(), sums.begin());
  return sums;
}

std::vector<Draw> order_by_class(const std::vector<int64_t>& labels, uint64_t seed, int64_t epoch,
                                 const Sampling& sampling) {
  constexpr Stream kStream = Stream::kClassSampling;
  const auto step = static_cast<uint32_t>(epoch);
  std::vector<ClassImages> classes = images_of_classes(labels);
  const std::vector<double> sums = cumulated(classes, sampling, epoch);
  std::vector<Draw> order;
  order.reserve(labels.size());
  for (size_t place = 0; place < labels.size(); ++place) {
    const auto words = random_words(seed, kStream, static_cast<uint32_t>(place), kClassOfADraw, 0, step);
    // Below the last sum, also as rounded; the first sum above it is never that of a class without images.
    const double at = unit_double(words[0], words[1]) * sums.back();
    const auto label = static_cast<size_t>(std::upper_bound(sums.begin(), sums.end(), at) - sums.begin());
    ClassImages& images = classes[label];
    const int64_t size = std::ssize(images.positions), round = images.drawn / size, next = images.drawn % size;
    if (next == 0) {
      images.order = permutation(size, seed, kStream, step, kOrderOfAClass + static_cast<uint32_t>(label),
                                 static_cast<uint32_t>(round));
    }
    ++images.drawn;
    order.push_back({images.positions[static_cast<size_t>(images.order[static_cast<size_t>(next)])], round});
  }
  return order;
}

}  // namespace

std::vector<Draw> epoch_order(const std::vector<int64_t>& labels, std::optional<uint64_t> seed, int64_t epoch,
                              const Sampling& sampling) {
  if (seed && sampling.sampler != Sampling::kUniform) return order_by_class(labels, *seed, epoch, sampling);
  std::vector<int64_t> positions(labels.size());
  std::iota(positions.begin(), positions.end(), int64_t{0});
  if (seed) positions = permutation(std::ssize(labels), *seed, Stream::kShuffle, static_cast<uint32_t>(epoch));
  std::vector<Draw> order;
  order.reserve(positions.size());
  for (const int64_t position : positions) order.push_back({position});
  return order;
}

}  // namespace settrain
