#include "datasets/shared_images.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <optional>
#include <span>
#include <tuple>

#include "datasets/image_files.h"
#include "src/core/digest.h"
#include "src/core/error.h"
#include "src/core/interrupt.h"

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

bool in_two_splits(std::span<const SharedCandidate> group) {
  return std::any_of(group.begin(), group.end(), [&](const auto& other) { return other.split != group[0].split; });
}

// The files of the sizes that files of two splits have, by size, then by split and place.
std::vector<SharedCandidate> files_of_equal_sizes(const SplitsInOrder& splits) {
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
    if (in_two_splits({begin, end})) candidates.insert(candidates.end(), begin, end);
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

// The candidates of each key, without the groups that lie in one split.
template <typename Key>
FileGroups grouped_by(const std::vector<SharedCandidate>& candidates, const Key& key_of) {
  FileGroups groups;
  for (const SharedCandidate& candidate : candidates) {
    throw_if_interrupted();
    if (const auto key = key_of(candidate)) groups[*key].push_back(candidate);
  }
  std::erase_if(groups, [](const auto& group) { return !in_two_splits(group.second); });
  return groups;
}

// Groups of files with the same contents.
FileGroups equal_contents(const SplitsInOrder& splits, const std::vector<SharedCandidate>& candidates) {
  FileGroups equal;
  for (auto& [ends, group] : grouped_by(
           candidates, [&](const auto& candidate) { return ends_of(file_of(splits, candidate), candidate.size); })) {
    if (group[0].size <= 2 * kEnd) {
      equal.emplace(ends, group);
    } else {
      equal.merge(grouped_by(group, [&](const auto& candidate) { return content_of(file_of(splits, candidate)); }));
    }
  }
  return equal;
}

}  // namespace

std::string SharedImages::count_text() const {
  return fmt::format("{} image{} of {} {} also in {}", count, count == 1 ? "" : "s", other, count == 1 ? "is" : "are",
                     split);
}

std::string SharedImages::text() const {
  return fmt::format("{}; the first: '{}'{}", count_text(), first_other,
                     first == first_other ? "" : " is the image of '" + first + "'");
}

SharedImageSearch find_shared_images(const Dataset& dataset, int64_t most_files) {
  const SplitsInOrder splits = {&dataset.train, &dataset.val, &dataset.calibration, &dataset.test};
  const std::vector<SharedCandidate> candidates = files_of_equal_sizes(splits);
  SharedImageSearch search;
  const bool compare_contents = std::ssize(candidates) <= most_files;
  if (!compare_contents) search.not_compared = std::ssize(candidates);
  const FileGroups groups =
      compare_contents
          ? equal_contents(splits, candidates)
          : grouped_by(candidates, [&](const auto& candidate) { return identity_of(file_of(splits, candidate)); });

  for (size_t a = 0; a < kSharingSplits; ++a) {
    for (size_t b = a + 1; b < kSharingSplits; ++b) {
      int64_t count = 0;
      std::optional<std::pair<SharedCandidate, SharedCandidate>> first;  // by its place in `b`
      for (const auto& [key, group] : groups) {
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
                              .first = file_of(splits, first->first).string(),
                              .first_other = file_of(splits, first->second).string()});
    }
  }
  return search;
}

}  // namespace settrain
