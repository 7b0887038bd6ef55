#include "datasets/label_noise.h"

#include <fmt/format.h>

#include <array>
#include <memory>
#include <vector>

#include "datasets/label_draw.h"
#include "src/core/digest.h"
#include "src/core/error.h"
#include "src/core/streams.h"

namespace settrain {
namespace {

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

  const std::unique_ptr<const LabelDraw> noise = make_label_draw(options, dataset);
  // By classes and not by samples: a sum of a million terms would lose digits.
  const std::vector<int64_t> counts = count_classes(dataset.train, dataset.num_classes());
  double expected_changes = 0;
  for (int64_t c = 0; c < dataset.num_classes(); ++c) {
    expected_changes += static_cast<double>(counts[static_cast<size_t>(c)]) * noise->chance_of_change(c);
  }

  int64_t stayed_in_superclass = 0;
  for (size_t i = 0; i < labels.size(); ++i) {
    const int64_t label = labels[i];
    const auto id = static_cast<uint32_t>(dataset.train.ids[i]);
    labels[i] = noise->draw(label, random_words(options.seed, Stream::kLabelNoise, id));
    if (labels[i] == label) continue;
    ++report.changed;
    if (!dataset.superclass_of.empty()) {
      const auto superclass = [&](int64_t c) { return dataset.superclass_of[static_cast<size_t>(c)]; };
      stayed_in_superclass += superclass(labels[i]) == superclass(label);
    }
  }
  if (const auto n = static_cast<double>(labels.size()); n > 0) {
    report.effective_rate = expected_changes / n;
    report.changed_rate = static_cast<double>(report.changed) / n;
  }
  report.nominal_rate = options.kind == "confusion" ? report.effective_rate : options.rate;
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
                    "' has no superclasses; choose index_block or uniform, or name them by data.superclasses");
  }
  if (options.kind != "none" && !dataset.train.label_sets.empty()) {
    config.fail("data.label_noise.kind", "data set '" + dataset.name +
                                             "' has several labels an image, of which label noise would change one "
                                             "alone; expected none");
  }
  return apply_label_noise(options, dataset);
}

}  // namespace settrain
