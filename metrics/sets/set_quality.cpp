#include "metrics/sets/set_quality.h"

#include <ATen/Parallel.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "metrics/class_hits.h"
#include "src/core/shape.h"

namespace settrain {
namespace {

std::array<double, 2> wilson_interval(double share, int64_t images) {
  constexpr double z = 1.959963984540054;  // the normal quantile of 0.975
  const auto n = static_cast<double>(images);
  const double centre = share + z * z / (2 * n);
  const double half = z * std::sqrt(share * (1 - share) / n + z * z / (4 * n * n));
  const double scale = 1 + z * z / n;
  return {(centre - half) / scale, (centre + half) / scale};
}

/// The size of the set at `place`, from 0, when sets are sorted by size. `counts`: see counts_of().
double size_at(const std::vector<int64_t>& counts, int64_t place) {
  size_t size = 0;
  for (; place >= counts[size]; ++size) place -= counts[size];
  return static_cast<double>(size);
}

void judge_sizes(const SetOutcomes& outcomes, SetQuality& quality) {
  const std::vector<int64_t> counts = counts_of(outcomes.sizes, outcomes.classes + 1);
  const auto n = static_cast<double>(quality.images);
  quality.mean_size = mean_of_counts(counts);
  quality.median_size = (size_at(counts, (quality.images - 1) / 2) + size_at(counts, quality.images / 2)) / 2;
  quality.empty = static_cast<double>(counts.front()) / n;
  quality.full = static_cast<double>(counts.back()) / n;
}

/// [images] float64: the share of each image's labels that its set holds.
at::Tensor found_shares(const SetOutcomes& outcomes) {
  if (outcomes.labels.dim() == 1) return outcomes.has_label.to(at::kDouble);
  return outcomes.has_label.sum(1).to(at::kDouble).div(outcomes.labels.sum(1));
}

/// A class' images are those that have it as a label.
ClassHits hits_of(const SetOutcomes& outcomes) {
  if (outcomes.labels.dim() == 1) return count_hits(outcomes.has_label, outcomes.labels, outcomes.classes);
  const auto counts = [](const at::Tensor& flags) {
    const at::Tensor of_classes = flags.sum(0);
    return std::vector<int64_t>(of_classes.const_data_ptr<int64_t>(),
                                of_classes.const_data_ptr<int64_t>() + of_classes.numel());
  };
  return {counts(outcomes.has_label), counts(outcomes.labels)};
}

double size_stratified_violation(const SetOutcomes& outcomes, double wanted) {
  constexpr std::array kLargestSizes{int64_t{1}, int64_t{3}, int64_t{10}, int64_t{100}};  // of all strata but the last
  std::array<double, kLargestSizes.size() + 1> hits{}, total{};
  const auto* sizes = outcomes.sizes.const_data_ptr<int64_t>();
  const at::Tensor shares = found_shares(outcomes);
  for (int64_t i = 0; i < outcomes.sizes.size(0); ++i) {
    const auto stratum = static_cast<size_t>(std::lower_bound(kLargestSizes.begin(), kLargestSizes.end(), sizes[i]) -
                                             kLargestSizes.begin());
    hits[stratum] += shares.const_data_ptr<double>()[i];
    ++total[stratum];
  }
  double worst = 0;
  for (size_t s = 0; s < total.size(); ++s) {
    if (total[s] == 0) continue;
    worst = std::max(worst, std::abs(wanted - hits[s] / total[s]));
  }
  return worst;
}

void judge_classes(const ClassHits& counts, double wanted, SetQuality& quality) {
  int64_t with_images = 0, below_half = 0;
  double missing = 0, gap = 0;
  for (size_t y = 0; y < counts.total.size(); ++y) {
    quality.class_coverage.push_back(static_cast<double>(counts.hits[y]) / static_cast<double>(counts.total[y]));
    if (counts.total[y] == 0) continue;
    const double coverage = quality.class_coverage.back();
    ++with_images;
    below_half += 2 * counts.hits[y] < counts.total[y];
    missing += std::max(0.0, wanted - coverage);
    gap += std::abs(wanted - coverage);
  }
  const auto n = static_cast<double>(with_images);
  quality.classes_without_images = std::ssize(counts.total) - with_images;
  quality.macro_coverage = macro_accuracy(counts).mean;
  quality.below_half = static_cast<double>(below_half) / n;
  quality.undercoverage_gap = std::isnan(wanted) ? kUndefinedQuality : missing / n;
  quality.coverage_gap = gap / n;
}

/// [ranks above the classes][classes]: the node of that rank to which a class belongs; where it has none, the highest
/// one below.
std::vector<std::vector<int64_t>> nodes_by_rank(const Taxonomy& taxonomy) {
  std::vector<std::vector<int64_t>> by_rank;
  std::vector<int64_t> nodes(static_cast<size_t>(taxonomy.num_classes()));
  std::iota(nodes.begin(), nodes.end(), int64_t{0});
  for (int64_t rank = 1; rank < std::ssize(taxonomy.ranks); ++rank) {
    for (int64_t& node : nodes) {
      const int64_t above = taxonomy.parent[static_cast<size_t>(node)];
      if (taxonomy.rank[static_cast<size_t>(above)] == rank) node = above;
    }
    by_rank.push_back(nodes);
  }
  return by_rank;
}

void judge_nodes(const at::Tensor& sets, const Taxonomy& taxonomy, SetOutcomes& outcomes) {
  const NodeCover tree(taxonomy.parent, taxonomy.num_classes());
  const auto by_rank = nodes_by_rank(taxonomy);
  const at::Tensor rows = sets.contiguous(), labels = outcomes.labels.contiguous();
  outcomes.nodes = at::zeros_like(outcomes.labels);
  outcomes.depths = at::zeros({labels.size(0)}, at::kDouble);
  outcomes.has_rank = at::zeros({labels.size(0), std::ssize(by_rank)}, at::kBool);
  at::parallel_for(0, labels.size(0), /*grain_size=*/64, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const bool* set = rows.const_data_ptr<bool>() + i * outcomes.classes;
      const std::vector<int64_t> nodes = tree.exactly(set);
      double depths = 0;
      for (const int64_t node : nodes) depths += static_cast<double>(tree.depth(node));
      outcomes.nodes.mutable_data_ptr<int64_t>()[i] = std::ssize(nodes);
      if (!nodes.empty()) outcomes.depths.mutable_data_ptr<double>()[i] = depths / static_cast<double>(nodes.size());
      bool* has_rank = outcomes.has_rank.mutable_data_ptr<bool>() + i * std::ssize(by_rank);
      for (const std::vector<int64_t>& node_of : by_rank) {
        const int64_t wanted = node_of[static_cast<size_t>(labels.const_data_ptr<int64_t>()[i])];
        for (int64_t c = 0; c < outcomes.classes; ++c) *has_rank |= set[c] && node_of[static_cast<size_t>(c)] == wanted;
        ++has_rank;
      }
    }
  });
}

}  // namespace

SetOutcomes SetOutcomes::of(const at::Tensor& images) const {
  SetOutcomes some{labels.index_select(0, images), has_label.index_select(0, images), sizes.index_select(0, images),
                   classes};
  if (!nodes.defined()) return some;
  some.nodes = nodes.index_select(0, images);
  some.depths = depths.index_select(0, images);
  some.has_rank = has_rank.index_select(0, images);
  return some;
}

SetOutcomes outcomes_of(const at::Tensor& sets, const at::Tensor& labels, const Taxonomy& taxonomy) {
  check_shape("sets", sets.sizes(), {kAnySize, kAnySize});
  if (labels.dim() == 2) {
    check_shape("labels", labels.sizes(), {sets.size(0), sets.size(1)});
    return {labels, sets.logical_and(labels), sets.sum(1), sets.size(1)};
  }
  check_shape("labels", labels.sizes(), {sets.size(0)});
  SetOutcomes outcomes{labels, sets.gather(1, labels.unsqueeze(1)).squeeze(1), sets.sum(1), sets.size(1)};
  if (!taxonomy.empty()) judge_nodes(sets, taxonomy, outcomes);
  return outcomes;
}

SetQuality set_quality(const SetOutcomes& outcomes, double wanted, const std::vector<int64_t>& train_counts) {
  const ClassHits counts = hits_of(outcomes);
  SetQuality quality;
  quality.images = outcomes.labels.size(0);
  judge_classes(counts, wanted, quality);
  quality.shot_coverage.fill(kUndefinedQuality);
  if (!train_counts.empty()) {
    for (const ShotGroup group : {ShotGroup::kFew, ShotGroup::kMedium, ShotGroup::kMany})
      quality.shot_coverage[static_cast<size_t>(group)] = shot_accuracy(counts, train_counts, group).mean;
  }
  quality.coverage = found_shares(outcomes).mean().item<double>();
  if (quality.images == 0) {
    quality.interval.fill(kUndefinedQuality);
    quality.mean_size = quality.median_size = quality.empty = quality.full = kUndefinedQuality;
    quality.size_stratified_violation = kUndefinedQuality;
    return quality;
  }
  if (outcomes.nodes.defined()) {
    const auto filled = static_cast<double>(outcomes.sizes.gt(0).sum().item<int64_t>());
    quality.mean_nodes = outcomes.nodes.sum().item<double>() / filled;
    quality.mean_depth = outcomes.depths.sum().item<double>() / filled;
    const at::Tensor shares = outcomes.has_rank.to(at::kDouble).mean(0);
    quality.rank_coverage = {shares.const_data_ptr<double>(), shares.const_data_ptr<double>() + shares.numel()};
  }
  quality.interval = wilson_interval(quality.coverage, quality.images);
  judge_sizes(outcomes, quality);
  quality.size_stratified_violation =
      std::isnan(wanted) ? kUndefinedQuality : size_stratified_violation(outcomes, wanted);
  return quality;
}

SetQuality set_quality(const at::Tensor& sets, const at::Tensor& labels, double wanted,
                       const std::vector<int64_t>& train_counts, const Taxonomy& taxonomy) {
  return set_quality(outcomes_of(sets, labels, taxonomy), wanted, train_counts);
}

}  // namespace settrain
