#include "src/papers/design/data_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <utility>

#include "datasets/long_tail.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;

// What data.long_tail leaves of classes of one size.
int64_t long_tail_size(int64_t train, int64_t classes, double imbalance) {
  std::vector<int64_t> counts(static_cast<size_t>(classes), train / classes);
  std::fill_n(counts.begin(), train % classes, train / classes + 1);
  counts = long_tail_counts(imbalance, std::move(counts));
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

DataFacts held_out(const config::Config& config, int64_t classes, int64_t train, int64_t test) {
  const auto val = config.get<int64_t>("data.val_size");
  // 0 stands for all that are left.
  const int64_t kept = config.has("data.train_size") ? config.get<int64_t>("data.train_size") : 0;
  return {.classes = classes, .train = kept > 0 ? kept : train - val, .val = val, .test = test};
}

std::optional<DataFacts> published(const config::Config& config) {
  const auto& name = config.get<std::string>("data.name");
  const auto at = [&config](const std::string& key) { return config.get<int64_t>("data." + key); };
  if (name == "cifar100") {
    DataFacts facts = held_out(config, 100, 50'000, 10'000);
    facts.size = 32;
    return facts;
  }
  if (name == "fashion_mnist") {
    DataFacts facts = held_out(config, 10, 60'000, 10'000);
    facts.size = 28;
    facts.channels = 1;
    return facts;
  }
  if (name == "synthetic") {
    return DataFacts{at("num_classes"), at("train_size"), at("val_size"),
                     at("test_size"),   at("image_size"), at("channels")};
  }
  constexpr int64_t kCrop = 224;
  if (name == "imagenet") {
    DataFacts facts = held_out(config, 1000, 1'281'167, 50'000);
    facts.size = kCrop;
    return facts;
  }
  if (name == "imagenet_lt") return DataFacts{1000, 115'846, 20'000, 50'000, kCrop};
  if (name == "plantnet300k") {
    const DataFacts facts{at("expected.classes"), at("expected.train"), at("expected.val"), at("expected.test"), kCrop};
    const bool is_any = std::min({facts.classes, facts.train, facts.val, facts.test}) < 0;
    return is_any ? std::nullopt : std::optional(facts);
  }
  return std::nullopt;
}

}  // namespace

std::optional<DataFacts> facts_of(const config::Config& config) {
  auto facts = published(config);
  if (!facts) return facts;
  facts->train = long_tail_size(facts->train, facts->classes, config.get<double>("data.long_tail.imbalance"));
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
  }
  const auto& weights = config.get<std::string>("model.pretrained");
  if (weights != "none" && !fs::is_regular_file(weights, ignored)) {
    missing.push_back(fmt::format("the weights that training starts from are not in '{}'", weights));
  }
  return missing;
}

}  // namespace settrain
