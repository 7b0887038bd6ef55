#include "src/loader/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "src/core/random.h"
#include "src/core/table_text.h"

namespace settrain {
namespace {

double class_weight(const std::string& sampler, int64_t images) {
  if (images == 0) return 0;
  if (sampler == Sampling::kClassBalanced) return 1;
  const auto n = static_cast<double>(images);
  return sampler == Sampling::kSquareRoot ? std::sqrt(n) : n;
}

std::vector<double> fixed_probabilities(const std::string& sampler, const std::vector<int64_t>& counts) {
  std::vector<double> probabilities;
  double sum = 0;
  for (const int64_t n : counts) {
    probabilities.push_back(class_weight(sampler, n));
    sum += probabilities.back();
  }
  for (double& p : probabilities) p /= sum;
  return probabilities;
}

// The largest number over the smallest, among classes with images.
template <class Number>
double imbalance(const std::vector<Number>& numbers) {
  double least = 0, most = 0;
  for (const auto number : numbers) {
    const auto value = static_cast<double>(number);
    if (value > 0 && (least == 0 || value < least)) least = value;
    most = std::max(most, value);
  }
  return most / least;
}

struct ClassDraws {
  std::vector<int64_t> images;      // [classes]
  std::vector<double> first, last;  // [classes] probabilities in these epochs
};

ClassDraws class_draws(const Dataset& dataset, const Sampling& sampling) {
  ClassDraws draws{std::vector<int64_t>(static_cast<size_t>(dataset.num_classes())), {}, {}};
  for (const int64_t label : dataset.train.labels) ++draws.images.at(static_cast<size_t>(label));
  draws.first = class_probabilities(sampling, draws.images, 0);
  draws.last = class_probabilities(sampling, draws.images, std::max<int64_t>(sampling.epochs - 1, 0));
  return draws;
}

// Blocks of the random words: 0 for the classes of the draws, then one for each class and the order of its images.
constexpr uint32_t kClassOfADraw = 0, kOrderOfAClass = 1;

struct ClassImages {
  std::vector<int64_t> positions;  // in the split
  std::vector<int64_t> order;      // in this round
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

// Cumulative sums of the class probabilities.
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
    // `at` is below the last sum, even after rounding. The first sum above it never belongs to a class without images.
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

// Each of the first draws `repeats` times in a row, as many as before in all.
std::vector<Draw> repeated(const std::vector<Draw>& order, int64_t repeats) {
  std::vector<Draw> longer;
  longer.reserve(order.size());
  for (int64_t i = 0; i < std::ssize(order); ++i) {
    const Draw& draw = order[static_cast<size_t>(i / repeats)];
    longer.push_back({draw.position, draw.repetition * repeats + i % repeats});
  }
  return longer;
}

}  // namespace

std::vector<double> class_probabilities(const Sampling& sampling, const std::vector<int64_t>& counts, int64_t epoch) {
  std::vector<double> probabilities = fixed_probabilities(sampling.sampler, counts);
  if (sampling.sampler != Sampling::kProgressive) return probabilities;
  const std::vector<double> balanced = fixed_probabilities(Sampling::kClassBalanced, counts);
  const auto epochs = std::max<int64_t>(sampling.epochs, 1);
  const double part = static_cast<double>(std::min(epoch, epochs)) / static_cast<double>(epochs);
  for (size_t j = 0; j < balanced.size(); ++j) probabilities[j] = (1 - part) * probabilities[j] + part * balanced[j];
  return probabilities;
}

std::string class_counts_csv(const Dataset& dataset, const Sampling& sampling) {
  const ClassDraws draws = class_draws(dataset, sampling);
  const auto size = static_cast<double>(dataset.train.size());
  std::string text = csv_row({"class", "name", "images", "draws_first_epoch", "draws_last_epoch"});
  for (size_t j = 0; j < draws.images.size(); ++j) {
    text += csv_row({std::to_string(j), dataset.class_names[j], std::to_string(draws.images[j]),
                     fmt::format("{:.6g}", size * draws.first[j]), fmt::format("{:.6g}", size * draws.last[j])});
  }
  return text;
}

std::string describe_imbalance(const Dataset& dataset, const Sampling& sampling) {
  const ClassDraws draws = class_draws(dataset, sampling);
  std::string text = fmt::format("sampler {}: the most frequent class has {:.4g} times the images of the rarest, and ",
                                 sampling.sampler, imbalance(draws.images));
  text += fmt::format("{:.4g} times its draws", imbalance(draws.first));
  if (sampling.sampler == Sampling::kProgressive)
    text += fmt::format(" in the first epoch, {:.4g} times in the last", imbalance(draws.last));
  return text;
}

std::vector<Draw> epoch_order(const std::vector<int64_t>& labels, std::optional<uint64_t> seed, int64_t epoch,
                              const Sampling& sampling) {
  if (seed && sampling.repeats > 1) {
    Sampling once = sampling;
    once.repeats = 1;
    return repeated(epoch_order(labels, seed, epoch, once), sampling.repeats);
  }
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
