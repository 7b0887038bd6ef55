#include "datasets/shared_images.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

#include "datasets/feature_table.h"
#include "datasets/image_files.h"
#include "src/core/digest.h"
#include "src/core/error.h"
#include "src/core/interrupt.h"
#include "src/core/log.h"

namespace settrain {
namespace {

constexpr size_t kSharingSplits = 4;

struct SharedCandidate {
  int64_t size = 0;
  size_t split = 0;
  int64_t sample = 0;
};

using SplitsInOrder = std::array<const Split*, kSharingSplits>;

std::filesystem::path file_of(const SplitsInOrder& splits, const SharedCandidate& candidate) {
  const Split& split = *splits[candidate.split];
  return file_of(*split.images, split.ids[static_cast<size_t>(candidate.sample)]);
}

// The path of its file in quotes, or what its source calls it.
std::string name_of(const SplitsInOrder& splits, const SharedCandidate& candidate) {
  const std::filesystem::path file = file_of(splits, candidate);
  if (!file.empty()) return fmt::format("'{}'", file.string());
  const Split& split = *splits[candidate.split];
  return split.images->describe(split.ids[static_cast<size_t>(candidate.sample)]);
}

// Whether a group of candidates, ordered by split and place, says something.
using IsNotable = std::function<bool(std::span<const SharedCandidate>)>;

bool in_two_splits(std::span<const SharedCandidate> group) {
  return group.front().split != group.back().split;
}

bool has_same_labels(const Split& split, int64_t a, int64_t b) {
  if (split.label_sets.empty()) return split.labels[static_cast<size_t>(a)] == split.labels[static_cast<size_t>(b)];
  return std::ranges::is_permutation(split.label_sets.of(a), split.label_sets.of(b));
}

// Whether two of the group have one split and different labels.
bool has_two_labels(const SplitsInOrder& splits, std::span<const SharedCandidate> group) {
  for (size_t i = 1; i < group.size(); ++i) {
    const auto &a = group[i - 1], &b = group[i];
    if (a.split == b.split && !has_same_labels(*splits[a.split], a.sample, b.sample)) return true;
  }
  return false;
}

// The files whose sizes are those of notable groups, by size, then by split and place.
std::vector<SharedCandidate> files_of_equal_sizes(const SplitsInOrder& splits, const IsNotable& is_notable) {
  std::vector<SharedCandidate> all, candidates;
  for (size_t s = 0; s < kSharingSplits; ++s) {
    const auto* files = dynamic_cast<const ImageFiles*>(splits[s]->images.get());
    if (!files) continue;
    for (int64_t i = 0; i < splits[s]->size(); ++i) {
      const int64_t size = files->files().file_size(splits[s]->ids[static_cast<size_t>(i)]);
      if (size > 0) all.push_back({size, s, i});
    }
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return std::tie(a.size, a.split, a.sample) < std::tie(b.size, b.split, b.sample);
  });
  for (auto begin = all.begin(); begin != all.end();) {
    const auto end = std::find_if(begin, all.end(), [&](const auto& other) { return other.size != begin->size; });
    if (is_notable({begin, end})) candidates.insert(candidates.end(), begin, end);
    begin = end;
  }
  return candidates;
}

// Equal for paths and links that lead to one file.
std::optional<std::string> identity_of(const std::filesystem::path& file) {
  struct stat status {};
  if (stat(file.c_str(), &status) != 0) return std::nullopt;
  return fmt::format("{} {}", status.st_dev, status.st_ino);
}

constexpr int64_t kEnd = 4096;  // bytes

// The digest of the first and the last kEnd bytes.
std::optional<std::string> ends_of(const std::filesystem::path& file, int64_t size) {
  std::string bytes(static_cast<size_t>(std::min(size, 2 * kEnd)), '\0');
  const auto first = static_cast<std::streamsize>(std::min(size, kEnd));
  const auto last = static_cast<std::streamsize>(bytes.size()) - first;
  std::ifstream stream(file, std::ios::binary);
  if (!stream.read(bytes.data(), first) || !stream.seekg(size - last) || !stream.read(bytes.data() + first, last)) {
    return std::nullopt;
  }
  return fmt::format("{} {}", size, sha256(bytes));
}

std::optional<std::string> content_of(const std::filesystem::path& file) {
  try {
    return sha256_of_file(file);
  } catch (const DataError&) {
    return std::nullopt;
  }
}

using FileGroups = std::map<std::string, std::vector<SharedCandidate>>;

// The candidates of each key, where they are notable.
template <typename Key>
FileGroups grouped_by(const std::vector<SharedCandidate>& candidates, const IsNotable& is_notable, const Key& key_of) {
  FileGroups groups;
  for (const SharedCandidate& candidate : candidates) {
    throw_if_interrupted();
    if (const auto key = key_of(candidate)) groups[*key].push_back(candidate);
  }
  std::erase_if(groups, [&](const auto& group) { return !is_notable(group.second); });
  return groups;
}

// Groups of files with the same contents.
FileGroups equal_contents(const SplitsInOrder& splits, const std::vector<SharedCandidate>& candidates,
                          const IsNotable& is_notable) {
  FileGroups equal;
  for (auto& [ends, group] : grouped_by(candidates, is_notable, [&](const auto& candidate) {
         return ends_of(file_of(splits, candidate), candidate.size);
       })) {
    if (group[0].size <= 2 * kEnd) {
      equal.emplace(ends, group);
    } else {
      equal.merge(
          grouped_by(group, is_notable, [&](const auto& candidate) { return content_of(file_of(splits, candidate)); }));
    }
  }
  return equal;
}

// Whether a row has enough different numbers not to be equal to another image's by chance, as rows of zeros and of
// categories are.
bool is_telling(const std::vector<float>& row) {
  constexpr size_t kLeast = 8;
  std::set<float> numbers;
  for (const float number : row) {
    if (numbers.insert(number).second && numbers.size() == kLeast) return true;
  }
  return false;
}

// Groups of equal rows of features.
FileGroups equal_rows(const SplitsInOrder& splits, const IsNotable& is_notable) {
  std::vector<SharedCandidate> rows;
  for (size_t s = 0; s < kSharingSplits; ++s) {
    const auto table = splits[s]->images ? splits[s]->images->features() : nullptr;
    if (!table) continue;
    for (int64_t i = 0; i < splits[s]->size(); ++i) rows.push_back({table->width(), s, i});
  }
  std::vector<float> row;
  return grouped_by(rows, is_notable, [&](const SharedCandidate& candidate) -> std::optional<std::string> {
    row.resize(static_cast<size_t>(candidate.size));
    const Split& split = *splits[candidate.split];
    split.images->features()->read(split.ids[static_cast<size_t>(candidate.sample)], row.data());
    if (!is_telling(row)) return std::nullopt;
    const std::string_view bytes(reinterpret_cast<const char*>(row.data()), row.size() * sizeof(float));
    return std::to_string(std::hash<std::string_view>()(bytes));
  });
}

std::string labels_of(const Dataset& dataset, const Split& split, int64_t sample) {
  const auto name = [&](int64_t label) { return dataset.class_names.at(static_cast<size_t>(label)); };
  if (split.label_sets.empty()) return name(split.labels[static_cast<size_t>(sample)]);
  std::string names;
  for (const int64_t label : split.label_sets.of(sample)) names += (names.empty() ? "" : ", ") + name(label);
  return names;
}

// The images of a split that stand there again with other labels, if any.
std::optional<TwoLabels> two_labels_in(size_t split, const Dataset& dataset, const SplitsInOrder& splits,
                                       const FileGroups& groups) {
  int64_t count = 0;
  std::optional<std::pair<SharedCandidate, SharedCandidate>> first;  // by the place of the second
  for (const auto& [key, group] : groups) {
    const auto one = std::ranges::find(group, split, &SharedCandidate::split);
    for (auto other = one; other != group.end() && other->split == split; ++other) {
      if (has_same_labels(*splits[split], one->sample, other->sample)) continue;
      ++count;
      if (!first || other->sample < first->second.sample) first = {*one, *other};
    }
  }
  if (!first) return std::nullopt;
  return TwoLabels{.split = splits[split]->name,
                   .count = count,
                   .first = name_of(splits, first->first),
                   .other = name_of(splits, first->second),
                   .first_labels = labels_of(dataset, *splits[split], first->first.sample),
                   .other_labels = labels_of(dataset, *splits[split], first->second.sample)};
}

}  // namespace

std::string SharedImages::count_text() const {
  return fmt::format("{} image{} of {} {} also in {}", count, count == 1 ? "" : "s", other, count == 1 ? "is" : "are",
                     split);
}

std::string SharedImages::text() const {
  return fmt::format("{}; the first: {}{}", count_text(), first_other,
                     first == first_other ? "" : " is the image of " + first);
}

std::string TwoLabels::text() const {
  const std::string images = count == 1 ? "1 image has" : fmt::format("{} images have", count);
  const std::string pair =
      first == other ? fmt::format("{} has the labels {} and {}", first, first_labels, other_labels)
                     : fmt::format("{} ({}) is the image of {} ({})", other, other_labels, first, first_labels);
  return fmt::format("{} two labels in {}; the first: {}", images, split, pair);
}

void SharedImageSearch::warn() const {
  for (const SharedImages& shared : found) log::warning("[data] " + shared.text());
  for (const TwoLabels& labels : two_labels) log::warning("[data] " + labels.text());
}

SharedImageSearch find_shared_images(const Dataset& dataset, int64_t most_files) {
  const SplitsInOrder splits = {&dataset.train, &dataset.val, &dataset.calibration, &dataset.test};
  const IsNotable is_notable = [&](std::span<const SharedCandidate> group) {
    return in_two_splits(group) || has_two_labels(splits, group);
  };
  SharedImageSearch search;
  const std::vector<SharedCandidate> candidates = files_of_equal_sizes(splits, is_notable);
  FileGroups groups, shared;  // all of them, and those in two splits
  if (std::ssize(candidates) <= most_files) {
    groups = shared = equal_contents(splits, candidates, is_notable);
  } else {
    search.not_compared = std::ssize(candidates);
    groups = shared = grouped_by(candidates, is_notable,
                                 [&](const auto& candidate) { return identity_of(file_of(splits, candidate)); });
    // Files of one split are many more, where all have one size.
    const std::vector<SharedCandidate> between = files_of_equal_sizes(splits, in_two_splits);
    if (std::ssize(between) <= most_files) shared = equal_contents(splits, between, in_two_splits);
  }
  const FileGroups rows = equal_rows(splits, is_notable);
  groups.insert(rows.begin(), rows.end());
  shared.insert(rows.begin(), rows.end());
  for (size_t split = 0; split < kSharingSplits; ++split) {
    if (auto found = two_labels_in(split, dataset, splits, groups)) search.two_labels.push_back(std::move(*found));
  }

  for (size_t a = 0; a < kSharingSplits; ++a) {
    for (size_t b = a + 1; b < kSharingSplits; ++b) {
      int64_t count = 0;
      std::optional<std::pair<SharedCandidate, SharedCandidate>> first;  // by its place in `b`
      for (const auto& [key, group] : shared) {
        const auto in_a = std::find_if(group.begin(), group.end(), [&](const auto& one) { return one.split == a; });
        if (in_a == group.end()) continue;
        for (const SharedCandidate& other : group) {
          if (other.split != b) continue;
          ++count;
          if (!first || other.sample < first->second.sample) first = {*in_a, other};
        }
      }
      if (!first) continue;
      search.found.push_back({.split = splits[a]->name,
                              .other = splits[b]->name,
                              .count = count,
                              .first = name_of(splits, first->first),
                              .first_other = name_of(splits, first->second)});
    }
  }
  return search;
}

}  // namespace settrain
