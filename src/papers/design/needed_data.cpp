#include "src/papers/design/needed_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <utility>

#include "datasets/calibration_split.h"
#include "datasets/load_data.h"
#include "datasets/long_tail.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;

// The number of training images that data.long_tail leaves of classes of one size.
int64_t long_tail_size(int64_t train, int64_t classes, const LongTailOptions& options) {
  std::vector<int64_t> counts(static_cast<size_t>(classes), train / classes);
  std::fill_n(counts.begin(), train % classes, train / classes + 1);
  counts = long_tail_counts(options, std::move(counts));
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

constexpr int64_t kCrop = 224;  // the usual crop of pipelines for images of different sizes

}  // namespace

std::optional<DataFacts> facts_of(const DatasetRegistry& datasets, const config::Config& config) {
  const DatasetEntry& entry = datasets.at(config.get<std::string>("data.name"));
  auto facts = entry.facts ? entry.facts(config) : std::nullopt;
  const auto classes = config.read<ClassOptions>("data");
  if (!facts || !classes.only_superclasses.empty() || classes.superclass_share < 1) return std::nullopt;
  if (facts->size == 0) facts->size = kCrop;
  facts->train = long_tail_size(facts->train, facts->classes, config.read<LongTailOptions>("data"));
  const double calibration = config.read<CalibrationOptions>("data").share * static_cast<double>(facts->val);
  facts->calibration = std::llround(calibration);
  facts->val -= facts->calibration;
  if (const auto size = config.get<int64_t>("data.input_size"); size > 0) facts->size = size;
  return facts;
}

NeededFiles needed_files(const config::Config& config) {
  NeededFiles files{config.get<std::string>("data.name"), std::nullopt};
  if (config.has("data.root")) files.data += fmt::format(" ({})", config.get<std::string>("data.root"));
  const auto& weights = config.get<std::string>("model.pretrained");
  if (weights != "none") files.weights = weights;
  return files;
}

std::vector<std::string> missing_files(const config::Config& config) {
  std::vector<std::string> missing;
  std::error_code ignored;
  if (config.has("data.root")) {
    const auto& root = config.get<std::string>("data.root");
    if (!fs::is_directory(root, ignored) || fs::is_empty(root, ignored)) {
      missing.push_back(fmt::format("the data of {} are not in '{}' (`settrain data fetch` says where they come from)",
                                    config.get<std::string>("data.name"), root));
    }
  } else {
    for (const char* key : {"data.train", "data.val", "data.test"}) {
      const std::string file = config.has(key) ? config.get<std::string>(key) : "";
      if (!file.empty() && !fs::is_regular_file(file, ignored))
        missing.push_back(fmt::format("there is no file '{}' ({})", file, key));
    }
  }
  const auto& weights = config.get<std::string>("model.pretrained");
  if (weights != "none" && !fs::is_regular_file(weights, ignored)) {
    missing.push_back(fmt::format("the weights that training starts from are not in '{}'", weights));
  }
  return missing;
}

}  // namespace settrain
