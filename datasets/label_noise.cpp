#include "datasets/label_noise.h"

#include <fmt/format.h>

#include <array>
#include <stdexcept>
#include <vector>

#include "src/core/digest.h"
#include "src/core/error.h"
#include "src/core/streams.h"

namespace settrain {
namespace {

// The classes among which a class' labels are drawn anew, for every class.
std::vector<std::vector<int64_t>> groups_of_classes(const LabelNoiseOptions& options, const Dataset& dataset) {
  const int64_t num_classes = dataset.num_classes();
  const auto group_of = [&](int64_t c) -> int64_t {
    if (options.kind == "superclass") return dataset.superclass_of[static_cast<size_t>(c)];
    if (options.kind == "index_block") return c / options.block_size;
    if (options.kind == "uniform") return 0;
    throw std::logic_error("no label noise '" + options.kind + "'");
  };
  std::vector<std::vector<int64_t>> members(static_cast<size_t>(num_classes));
  for (int64_t c = 0; c < num_classes; ++c) members.at(static_cast<size_t>(group_of(c))).push_back(c);
  std::vector<std::vector<int64_t>> groups;
  for (int64_t c = 0; c < num_classes; ++c) groups.push_back(members[static_cast<size_t>(group_of(c))]);
  return groups;
}

std::string digest_of(const std::vector<int64_t>& labels) {
  Sha256 sha;
  for (const int64_t label : labels) {
    std::array<uint8_t, 8> bytes;
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(static_cast<uint64_t>(label) >> (8 * i));
    sha.add(bytes);
  }
  return sha.hex();
}

}  // namespace

LabelNoiseReport apply_label_noise(const LabelNoiseOptions& options, Dataset& dataset) {
  std::vector<int64_t>& labels = dataset.train.labels;
  LabelNoiseReport report;
  report.kind = options.kind;
  if (options.kind == "none") {
    report.digest = digest_of(labels);
    return report;
  }
  if (options.kind == "superclass" && dataset.superclass_of.empty()) {
    throw DataError(
        fmt::format("data set '{}' has no superclasses, which the label noise 'superclass' needs", dataset.name));
  }
  if (!dataset.train.label_sets.empty()) {
    throw DataError(fmt::format(
        "data set '{}' has several labels an image, of which label noise would change one alone", dataset.name));
  }
  report.nominal_rate = options.rate;

  const auto groups = groups_of_classes(options, dataset);
  int64_t stayed_in_superclass = 0;
  double chance_of_change = 0;
  for (size_t i = 0; i < labels.size(); ++i) {
    const int64_t label = labels[i];
    const auto& group = groups.at(static_cast<size_t>(label));
    const auto size = static_cast<uint32_t>(group.size());
    chance_of_change += 1.0 - 1.0 / size;

    const auto words = random_words(options.seed, Stream::kLabelNoise, static_cast<uint32_t>(dataset.train.ids[i]));
    if (unit_double(words[0], words[1]) >= options.rate) continue;
    labels[i] = group[uniform_below(words[2], words[3], size)];
    if (labels[i] == label) continue;
    ++report.changed;
    if (!dataset.superclass_of.empty()) {
      const auto superclass = [&](int64_t c) { return dataset.superclass_of[static_cast<size_t>(c)]; };
      stayed_in_superclass += superclass(labels[i]) == superclass(label);
    }
  }
  if (const auto n = static_cast<double>(labels.size()); n > 0) {
    report.effective_rate = options.rate * chance_of_change / n;
    report.changed_rate = static_cast<double>(report.changed) / n;
  }
  if (report.changed > 0 && !dataset.superclass_of.empty()) {
    report.within_superclass = static_cast<double>(stayed_in_superclass) / static_cast<double>(report.changed);
  }
  report.digest = digest_of(labels);
  return report;
}

LabelNoiseReport apply_label_noise(const config::Config& config, Dataset& dataset) {
  const LabelNoiseOptions options = read_label_noise(config);
  if (options.kind == "superclass" && dataset.superclass_of.empty()) {
    config.fail("data.label_noise.kind",
                "data set '" + dataset.name +
                    "' has no superclasses; choose index_block or uniform, or a data set with superclasses");
  }
  if (options.kind != "none" && !dataset.train.label_sets.empty()) {
    config.fail("data.label_noise.kind", "data set '" + dataset.name +
                                             "' has several labels an image, of which label noise would change one "
                                             "alone; expected none");
  }
  return apply_label_noise(options, dataset);
}

}  // namespace settrain
