#include "src/data_tools/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <new>
#include <numeric>
#include <unordered_set>
#include <utility>

#include "datasets/image_files.h"
#include "src/core/error.h"
#include "src/core/interrupt.h"
#include "src/core/ordered_prefetch.h"
#include "src/core/text.h"

namespace settrain {
namespace {

// The error or the warning of reading an image; empty where there was none.
struct ReadResult {
  std::string error, warning;
};

ReadResult read_image(const Split& split, int64_t sample) {
  const int64_t id = split.ids[static_cast<size_t>(sample)];
  try {
    Image image;
    if (const auto* files = dynamic_cast<const ImageFiles*>(split.images.get())) {
      return {{}, files->read_quietly(id, image)};
    }
    split.images->read(id, image);
    return {};
  } catch (const DataError& error) {
    return {error.what(), {}};
  } catch (const std::bad_alloc&) {
    return {split.images->describe(id) + ": there is not enough memory for its pixels", {}};
  }
}

std::string classes_of(const Dataset& dataset, const Split& split, int64_t sample) {
  const auto name = [&](int64_t c) { return dataset.class_names.at(static_cast<size_t>(c)); };
  if (split.label_sets.empty()) return name(split.labels[static_cast<size_t>(sample)]);
  std::string names;
  for (const int64_t c : split.label_sets.of(sample)) names += (names.empty() ? "" : ", ") + name(c);
  return names;
}

BadImage bad_image(const Dataset& dataset, const Split& split, int64_t sample, std::string reason) {
  const int64_t id = split.ids[static_cast<size_t>(sample)];
  const std::string file = file_of(*split.images, id).string();
  return {split.name, classes_of(dataset, split, sample), file.empty() ? split.images->describe(id) : file,
          std::move(reason)};
}

}  // namespace

bool VerifyReport::complete() const {
  return std::all_of(splits.begin(), splits.end(), [](const auto& split) { return split.read == split.images; });
}

VerifyReport verify_images(const Dataset& dataset, const std::vector<std::string>& splits, int64_t workers,
                           ProgressOutput output) {
  VerifyReport report;
  for (const std::string& name : splits)
    report.splits.push_back({.name = name, .images = split_named(dataset, name).size()});
  int64_t left = std::accumulate(report.splits.begin(), report.splits.end(), int64_t{0},
                                 [](int64_t sum, const VerifiedSplit& split) { return sum + split.images; });
  ProgressBar bar(std::move(output));
  for (VerifiedSplit& state : report.splits) {
    if (interrupted()) break;
    const Split& split = split_named(dataset, state.name);
    left -= state.images;
    constexpr int64_t kAhead = 16;  // images ahead for each worker, so that a large image does not block the others
    OrderedPrefetch<ReadResult> results(0, state.images, workers, workers * kAhead,
                                        [&split](int64_t sample) { return read_image(split, sample); });
    std::unordered_set<size_t> warned;  // hashes of the files' paths, since a list may name a file twice
    while (!interrupted()) {
      auto result = results.next();
      if (!result) break;
      if (!result->error.empty()) {
        report.bad.push_back(bad_image(dataset, split, state.read, std::move(result->error)));
        ++state.bad;
      }
      if (!result->warning.empty()) {
        std::string file = split.images->describe(split.ids[static_cast<size_t>(state.read)]);
        if (warned.insert(std::hash<std::string>()(file)).second && ++state.warned == 1) {
          state.first_warned = std::move(file);
          state.warning = std::move(result->warning);
        }
      }
      ++state.read;
      bar.update({.stage = "[data] " + state.name,
                  .done = state.read,
                  .total = state.images,
                  .after = left,
                  .figures = fmt::format("{} bad", report.bad.size())});
    }
  }
  bar.hide();
  return report;
}

std::string verify_text(const VerifyReport& report) {
  std::string text;
  for (const BadImage& image : report.bad) {
    text += fmt::format("bad: {}, class {}: {}\n", image.split, image.classes, image.reason);
  }
  for (const VerifiedSplit& split : report.splits) {
    if (split.warned == 0) continue;
    text += fmt::format("read with warnings: {}, {} file{}; the first is {}: {}\n", split.name,
                        format_count(split.warned), split.warned == 1 ? "" : "s", split.first_warned, split.warning);
  }
  for (const VerifiedSplit& split : report.splits) {
    const std::string read = split.read == split.images
                                 ? format_count(split.images)
                                 : fmt::format("{} of {}", format_count(split.read), format_count(split.images));
    text += fmt::format("{:<5} {} images read, {} bad\n", split.name, read, format_count(split.bad));
  }
  if (!report.complete()) text += "stopped: the other images were not read\n";
  return text;
}

std::string verify_list(const VerifyReport& report) {
  std::string text;
  std::unordered_set<std::string> written;
  for (const BadImage& image : report.bad) {
    if (written.insert(image.file).second) text += image.file + '\n';
  }
  return text;
}

}  // namespace settrain
