#include "datasets/synthetic_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "src/core/error.h"
#include "src/core/random.h"

namespace settrain {
namespace {

constexpr int64_t kGrid = 4;  // nodes of a template's pattern along each side

// Where a pixel lies between two nodes of the grid.
struct Place {
  int64_t node;
  double weight;  // of the node behind it
};

Place place_of(int64_t pixel, int64_t image_size) {
  const double x = (static_cast<double>(pixel) + 0.5) / static_cast<double>(image_size) * (kGrid - 1);
  const auto node = static_cast<int64_t>(x);
  const double t = x - static_cast<double>(node);
  return {node, t * t * (3 - 2 * t)};
}

bool within(const std::vector<uint8_t>& a, const std::vector<uint8_t>& b, int64_t levels) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](int x, int y) { return std::abs(x - y) <= levels; });
}

}  // namespace

SyntheticJoint::SyntheticJoint(int64_t num_classes, int64_t group_size, double ambiguity, double imbalance)
    : group_size_(group_size), ambiguity_(ambiguity) {
  double sum = 0;
  for (int64_t j = 0; j < num_classes; ++j) {
    prior_.push_back(std::pow(imbalance, -static_cast<double>(j) / static_cast<double>(num_classes - 1)));
    sum += prior_.back();
  }
  for (double& p : prior_) p /= sum;
}

int64_t SyntheticJoint::group_end(int64_t group) const {
  return std::min(num_classes(), (group + 1) * group_size_);
}

double SyntheticJoint::ambiguity_of(int64_t group) const {
  if (num_groups() == 1) return ambiguity_;
  const double place = static_cast<double>(group) / static_cast<double>(num_groups() - 1);
  return std::min(1.0, ambiguity_ * (0.5 + place));
}

double SyntheticJoint::cell_given_label(int64_t cell, int64_t label) const {
  const int64_t group = group_of(label);
  if (group_of(cell) != group) return 0;
  const double a = ambiguity_of(group);
  const double spread = a / static_cast<double>(group_end(group) - group_begin(group));
  return cell == label ? 1 - a + spread : spread;
}

std::vector<double> SyntheticJoint::label_given_cell(int64_t cell) const {
  std::vector<double> posterior(prior_.size());
  double sum = 0;
  for (int64_t y = 0; y < num_classes(); ++y) {
    const auto i = static_cast<size_t>(y);
    posterior[i] = prior_[i] * cell_given_label(cell, y);
    sum += posterior[i];
  }
  for (double& p : posterior) p /= sum;
  return posterior;
}

int64_t draw_class(const std::vector<double>& probabilities, double u) {
  size_t c = 0;
  for (; c + 1 < probabilities.size(); ++c) {
    u -= probabilities[c];
    if (u < 0) break;
  }
  return static_cast<int64_t>(c);
}

int64_t SyntheticJoint::draw_label(double u) const {
  return draw_class(prior_, u);
}

int64_t SyntheticJoint::draw_cell(int64_t label, double u) const {
  const int64_t group = group_of(label);
  const double a = ambiguity_of(group);
  if (u >= a) return label;
  const int64_t begin = group_begin(group), size = group_end(group) - begin;
  return begin + std::min(size - 1, static_cast<int64_t>(u / a * static_cast<double>(size)));
}

std::vector<int64_t> SyntheticJoint::counts(int64_t total) const {
  const int64_t least = total >= num_classes() ? 1 : 0;
  std::vector<int64_t> counts;
  std::vector<double> remainders;
  for (const double p : prior_) {
    const double wanted = p * static_cast<double>(total);
    counts.push_back(std::max(least, static_cast<int64_t>(wanted)));
    remainders.push_back(wanted - static_cast<double>(counts.back()));
  }
  int64_t left = total - std::accumulate(counts.begin(), counts.end(), int64_t{0});
  for (; left > 0; --left) {
    const auto largest = std::max_element(remainders.begin(), remainders.end());
    ++counts[static_cast<size_t>(largest - remainders.begin())];
    *largest -= 1;
  }
  // Classes that were lifted to one sample may have taken more than rounding left over: the most frequent classes give
  // it back.
  for (; left < 0; ++left) --*std::max_element(counts.rbegin(), counts.rend());
  return counts;
}

SyntheticImages::SyntheticImages(const SyntheticImageOptions& options, int64_t num_cells, std::vector<int64_t> cell_of,
                                 std::string origin)
    : options_(options), cell_of_(std::move(cell_of)), origin_(std::move(origin)) {
  for (int64_t cell = 0; cell < num_cells; ++cell) templates_.push_back(make_template(cell));
  check_templates();
}

SyntheticImages::Pixels SyntheticImages::make_template(int64_t cell) const {
  const int64_t size = options_.image_size;
  // Far enough from black and white that the noise is never cut off.
  const auto lowest = static_cast<double>(options_.pixel_noise);
  const double range = 255 - 2 * lowest;
  Pixels pixels(static_cast<size_t>(size * size * options_.channels));
  for (int64_t channel = 0; channel < options_.channels; ++channel) {
    std::array<double, kGrid * kGrid> nodes;
    for (int64_t node = 0; node < kGrid * kGrid; ++node) {
      const auto words = random_words(options_.seed, Stream::kSynthetic, static_cast<uint32_t>(cell),
                                      static_cast<uint32_t>(channel * kGrid * kGrid + node), 0, kTemplate);
      nodes[static_cast<size_t>(node)] = lowest + range * unit_double(words[0], words[1]);
    }
    for (int64_t y = 0; y < size; ++y) {
      const auto [row, down] = place_of(y, size);
      for (int64_t x = 0; x < size; ++x) {
        const auto [column, right] = place_of(x, size);
        const double* at = nodes.data() + row * kGrid + column;
        const double upper = at[0] + right * (at[1] - at[0]);
        const double lower = at[kGrid] + right * (at[kGrid + 1] - at[kGrid]);
        pixels[static_cast<size_t>((y * size + x) * options_.channels + channel)] =
            static_cast<uint8_t>(std::lround(upper + down * (lower - upper)));
      }
    }
  }
  return pixels;
}

void SyntheticImages::check_templates() const {
  for (size_t a = 0; a < templates_.size(); ++a) {
    for (size_t b = 0; b < a; ++b) {
      if (!within(templates_[a], templates_[b], 2 * options_.pixel_noise)) continue;
      throw DataError(
          fmt::format("synthetic: the images of classes {} and {} cannot be told apart under noise of {} levels; lower "
                      "data.pixel_noise, raise data.image_size or data.channels, or take another data.seed",
                      b, a, options_.pixel_noise));
    }
  }
}

void SyntheticImages::read(int64_t id, Image& image) const {
  image.height = image.width = options_.image_size;
  image.channels = options_.channels;
  image.pixels = templates_[static_cast<size_t>(cell_of(id))];
  const auto levels = static_cast<uint32_t>(2 * options_.pixel_noise + 1);
  for (size_t i = 0; i < image.pixels.size(); i += 4) {
    const auto words = random_words(options_.seed, Stream::kSynthetic, static_cast<uint32_t>(id),
                                    static_cast<uint32_t>(i / 4), 0, kPixels);
    for (size_t j = i; j < std::min(i + 4, image.pixels.size()); ++j) {
      const int64_t noise = uniform_below(words[j - i], levels) - options_.pixel_noise;
      image.pixels[j] = static_cast<uint8_t>(image.pixels[j] + noise);
    }
  }
}

int64_t SyntheticImages::recover_cell(const Image& image) const {
  for (size_t cell = 0; cell < templates_.size(); ++cell) {
    if (within(templates_[cell], image.pixels, options_.pixel_noise)) return static_cast<int64_t>(cell);
  }
  return -1;
}

}  // namespace settrain
