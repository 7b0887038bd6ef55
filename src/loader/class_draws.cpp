#include "src/loader/class_draws.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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

// Of classes with images, the largest number over the smallest.
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

}  // namespace settrain
