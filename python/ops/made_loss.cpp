#include "python/ops/made_loss.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "losses/make_loss.h"
#include "src/config/load.h"
#include "src/core/text.h"

namespace settrain {
namespace {

const LossRegistry& loss_registry() {
  static const LossRegistry registry = [] {
    LossRegistry losses("loss");
    register_builtin_losses(losses);
    return losses;
  }();
  return registry;
}

struct LossSettings {
  config::Config config;
  std::vector<int64_t> class_counts;
  std::vector<double> class_weights;
};

/// The numbers of a list that _loss.py wrote: "1,2,3".
template <class Number>
std::vector<Number> numbers_of(std::string_view list) {
  std::vector<Number> numbers;
  for (const char *at = list.data(), *const end = at + list.size(); at < end; ++at) {
    at = std::from_chars(at, end, numbers.emplace_back()).ptr;
  }
  return numbers;
}

LossSettings read_settings(const std::string& settings) {
  std::vector<std::string> overrides;
  std::vector<int64_t> class_counts;
  std::vector<double> class_weights;
  std::istringstream lines(settings);
  for (std::string line; std::getline(lines, line);) {
    const std::string_view value = std::string_view(line).substr(line.find('=') + 1);
    if (line.starts_with("class_counts=")) {
      class_counts = numbers_of<int64_t>(value);
    } else if (line.starts_with("class_weights=")) {
      class_weights = numbers_of<double>(value);
    } else {
      overrides.push_back(line);
    }
  }
  const std::vector<std::string> places(overrides.size(), "settrain.losses");
  config::Config config = config::load({{loss_section(loss_registry())}, {}}, {}, overrides, places);
  for (const config::Curve& curve : config.curves("loss")) {
    config.fail(curve.path + ".from", "only a run of the program has epochs to change it by; give one number");
  }
  return {std::move(config), std::move(class_counts), std::move(class_weights)};
}

/// The entry of the loss that the settings name.
const LossEntry& entry_of(const config::Config& config) {
  return loss_registry().at(config.get<std::string>("loss.name"));
}

MadeLoss make(const std::string& text, int64_t num_classes) {
  const LossSettings settings = read_settings(text);
  const LossContext context{
      .num_classes = num_classes, .class_counts = settings.class_counts, .train_ids = {}, .train_labels = {}};
  const LossEntry& entry = entry_of(settings.config);
  MadeLoss made{make_loss(loss_registry(), settings.config, context), entry.couples_samples, entry.takes_label_sets,
                entry.takes_mixed_labels};
  if (settings.class_weights.empty()) return made;
  if (std::ssize(settings.class_weights) != num_classes) {
    throw DataError(
        fmt::format("class_weights: expected {}, one a class, got {}", num_classes, settings.class_weights.size()));
  }
  made.loss->reweight(ClassWeights(settings.class_weights, settings.config.read<ClassWeightOptions>("loss")));
  return made;
}

}  // namespace

MadeLoss& loss_of(const std::string& settings, int64_t num_classes) {
  constexpr size_t kMostKept = 64;
  thread_local std::map<std::pair<int64_t, std::string>, MadeLoss> made;
  auto key = std::pair(num_classes, settings);
  if (const auto found = made.find(key); found != made.end()) return found->second;
  if (made.size() >= kMostKept) made.clear();
  MadeLoss loss = make(settings, num_classes);
  return made.emplace(std::move(key), std::move(loss)).first->second;
}

bool couples_samples(const std::string& settings) {
  return entry_of(read_settings(settings).config).couples_samples;
}

void check_settings(const std::string& settings) {
  read_settings(settings);
}

std::string in_python_words(const std::string& message) {
  std::vector<std::string> problems;
  std::istringstream lines(message);
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with(" problems in the configuration:")) continue;
    line.erase(0, std::min(line.find_first_not_of(' '), line.size()));
    for (const std::string_view prefix : {"settrain.losses: ", "loss."}) {
      if (line.starts_with(prefix)) line.erase(0, prefix.size());
    }
    for (const auto& [key, argument] : {std::pair<std::string_view, std::string_view>{"smoothing.", "smoothing_"},
                                        std::pair<std::string_view, std::string_view>{"lambda:", "lambda_:"}}) {
      if (line.starts_with(key)) line.replace(0, key.size(), argument);
    }
    problems.push_back(std::move(line));
  }
  return join(problems, "\n");
}

}  // namespace settrain
