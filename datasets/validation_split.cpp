#include "datasets/validation_split.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "src/core/error.h"
#include "src/core/random.h"

namespace settrain {
namespace {

// Draws `count` of the candidates, in a random order that is a function of (seed, step).
std::vector<int64_t> draw(const std::vector<int64_t>& candidates, int64_t count, int64_t seed, uint32_t step) {
  const auto order =
      permutation(static_cast<int64_t>(candidates.size()), static_cast<uint64_t>(seed), Stream::kSplit, step);
  std::vector<int64_t> drawn;
  for (int64_t i = 0; i < count; ++i) drawn.push_back(candidates[static_cast<size_t>(order[static_cast<size_t>(i)])]);
  return drawn;
}

// The samples of each class.
std::vector<std::vector<int64_t>> members_of(std::span<const int64_t> labels, int64_t num_classes) {
  std::vector<std::vector<int64_t>> members(static_cast<size_t>(num_classes));
  for (size_t i = 0; i < labels.size(); ++i) {
    members.at(static_cast<size_t>(labels[i])).push_back(static_cast<int64_t>(i));
  }
  return members;
}

std::vector<int64_t> draw_balanced(std::span<const int64_t> labels, int64_t num_classes, const SplitOptions& options) {
  if (options.val_size % num_classes != 0) {
    throw KeyError("data.val_size",
                   fmt::format("a balanced split holds out equally many of the {} classes; {} is no multiple",
                               num_classes, options.val_size));
  }
  const int64_t per_class = options.val_size / num_classes;
  const auto members = members_of(labels, num_classes);
  std::vector<int64_t> val;
  for (size_t c = 0; c < members.size(); ++c) {
    if (static_cast<int64_t>(members[c].size()) <= per_class) {
      throw KeyError("data.val_size",
                     fmt::format("{} leaves class {} without training images: it has {}, and {} of every class "
                                 "would be held out",
                                 options.val_size, c, members[c].size(), per_class));
    }
    const auto drawn = draw(members[c], per_class, options.split_seed, static_cast<uint32_t>(c));
    val.insert(val.end(), drawn.begin(), drawn.end());
  }
  return val;
}

// Draws `train_size` of the samples that are not in `val`, ascending.
std::vector<int64_t> balanced_subset(std::span<const int64_t> labels, int64_t num_classes,
                                     const std::vector<int64_t>& val, const SplitOptions& options) {
  const int64_t train_size = options.train_size;
  if (train_size % num_classes != 0) {
    throw KeyError("data.train_size", fmt::format("a balanced subset has equally many of the {} classes; {} is no "
                                                  "multiple",
                                                  num_classes, train_size));
  }
  const int64_t per_class = train_size / num_classes;
  const auto members = members_of(labels, num_classes);
  std::vector<int64_t> subset;
  for (size_t c = 0; c < members.size(); ++c) {
    // The same order as for the held-out images, which come first in it.
    int64_t missing = per_class;
    for (const int64_t i : draw(members[c], std::ssize(members[c]), options.split_seed, static_cast<uint32_t>(c))) {
      if (missing == 0) break;
      if (std::binary_search(val.begin(), val.end(), i)) continue;
      subset.push_back(i);
      --missing;
    }
    if (missing > 0) {
      throw KeyError("data.train_size", fmt::format("{} takes {} images of every class, and of class {} {} are left",
                                                    train_size, per_class, c, per_class - missing));
    }
  }
  std::sort(subset.begin(), subset.end());
  return subset;
}

}  // namespace

config::Keys SplitOptions::keys(int64_t default_val_size, const char* default_split) {
  using config::key;
  return {
      key("val_size", &SplitOptions::val_size, default_val_size,
          "Training images held out for validation; 0 trains on all of them, without a validation split.")
          .at_least(0)
          .in("images"),
      key("split", &SplitOptions::split, default_split,
          "How the validation images are drawn: uniform over all images, or balanced, equally many of every class.")
          .one_of({"uniform", "balanced"}),
      key("split_seed", &SplitOptions::split_seed, 1234,
          "Seed of the validation split, separate from the run's so that runs with different seeds share one split.")
          .at_least(0),
      key("train_size", &SplitOptions::train_size, kAll,
          "Size of the training subset after the validation images were held out, equally many of every class; "
          "data.long_tail then subsamples it further.")
          .at_least(1)
          .word("all", kAll)
          .in("images"),
  };
}

std::string SplitOptions::recipe() const {
  std::string recipe = fmt::format("split {} val_size {} seed {}\n", split, val_size, split_seed);
  if (train_size != kAll) recipe += fmt::format("train_size {}\n", train_size);
  return recipe;
}

HeldOut hold_out(std::span<const int64_t> labels, int64_t num_classes, const SplitOptions& options) {
  const auto total = static_cast<int64_t>(labels.size());
  if (options.val_size >= total) {
    throw KeyError("data.val_size", fmt::format("{} leaves no training images, there are {}", options.val_size, total));
  }
  HeldOut held_out;
  std::vector<int64_t> all(labels.size());
  std::iota(all.begin(), all.end(), int64_t{0});
  if (options.split == "balanced") {
    held_out.val = draw_balanced(labels, num_classes, options);
  } else {
    held_out.val = draw(all, options.val_size, options.split_seed, 0);
  }
  std::sort(held_out.val.begin(), held_out.val.end());
  if (options.train_size == SplitOptions::kAll) {
    std::set_difference(all.begin(), all.end(), held_out.val.begin(), held_out.val.end(),
                        std::back_inserter(held_out.train));
  } else {
    held_out.train = balanced_subset(labels, num_classes, held_out.val, options);
  }
  return held_out;
}

DataFacts held_out_facts(DataFacts published, const SplitOptions& options) {
  published.val = options.val_size;
  published.train = options.train_size == SplitOptions::kAll ? published.train - options.val_size : options.train_size;
  return published;
}

Split make_split(std::string name, std::shared_ptr<const ImageSource> images, std::vector<int64_t> ids,
                 std::span<const int64_t> labels) {
  Split split{std::move(name), std::move(images), std::move(ids), {}};
  for (const int64_t id : split.ids) split.labels.push_back(labels[static_cast<size_t>(id)]);
  return split;
}

Split make_split(std::string name, std::shared_ptr<const ImageSource> images, std::vector<int64_t> labels,
                 int64_t first_id) {
  std::vector<int64_t> ids(labels.size());
  std::iota(ids.begin(), ids.end(), first_id);
  return {std::move(name), std::move(images), std::move(ids), std::move(labels)};
}

}  // namespace settrain
