#include "datasets/label_noise.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "datasets/text_lines.h"
#include "src/core/digest.h"
#include "src/core/error.h"
#include "src/core/random.h"
#include "src/core/text.h"

namespace settrain {
namespace {

constexpr int64_t kRunSeed = -1;  // the word auto

config::Keys label_noise_keys(config::Key key) {
  return {std::move(key),
          config::key("seed", &LabelNoiseOptions::seed, kRunSeed, "Seed of the noise; auto is the run's seed.")
              .at_least(0)
              .word("auto", kRunSeed)};
}

config::Keys rate_keys() {
  using O = LabelNoiseOptions;
  config::Keys keys =
      label_noise_keys(config::key("rate", &O::rate, 0.2,
                                   "Probability that a training label is redrawn. With data.label_noise.new_label: any "
                                   "it may stay the same, so that a smaller fraction changes.")
                           .at_least(0)
                           .at_most(1));
  keys.push_back(config::key(
      "new_label", &O::new_label, O::NewLabel::kAny,
      "any: the new label may be the old one, as in Berrada et al. 2018, and with groups of 5 classes a rate p changes "
      "0.8 p of the labels. other: it is another one, and a rate p changes p of the labels, as the text of Garcin et "
      "al. 2022 says of p = 0.5 (its code draws any). A class that is alone in its group keeps its labels.",
      {{"any", O::NewLabel::kAny}, {"other", O::NewLabel::kOther}}));
  return keys;
}

constexpr double kTolerance = 1e-6;  // for a row's sum: numbers are written with a few decimals
constexpr const char* kBlanks = " \t\r";

// Removes the first field and the comma behind it, if any, from `text`, and returns the field.
std::string_view take_field(std::string_view& text) {
  const size_t end = text.find_first_of(" \t\r,");
  const std::string_view field = text.substr(0, end);
  text.remove_prefix(field.size());
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  if (text.starts_with(',')) {
    text.remove_prefix(1);
    text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  }
  return field;
}

// Appends the numbers of a line to `numbers`. Returns an error message, or an empty text.
std::string read_row(std::string_view text, int64_t num_classes, std::vector<double>& numbers) {
  int64_t count = 0;
  double sum = 0;
  while (!text.empty()) {
    const std::string_view field = take_field(text);
    const double number = parse_number<double>(field).value_or(std::nan(""));
    if (!std::isfinite(number)) {
      return fmt::format("expected numbers with blanks or commas between them, got '{}'", field.substr(0, 40));
    }
    if (number < 0) return fmt::format("{} is no probability", number);
    if (++count > num_classes) break;
    sum += number;
    numbers.push_back(number);
  }
  if (count != num_classes) {
    return fmt::format("expected {} numbers, one a class, got {}", num_classes,
                       count > num_classes ? "more" : fmt::format("{}", count));
  }
  if (std::abs(sum - 1) > kTolerance) return fmt::format("the numbers add up to {:.9g}, expected 1", sum);
  return {};
}

// How a new label is drawn for a sample.
class LabelDraw {
 public:
  virtual ~LabelDraw() = default;
  virtual double chance_of_change(int64_t label) const = 0;
  // `random`: the words of the sample, a function of its id and the seed alone.
  virtual int64_t draw(int64_t label, const std::array<uint32_t, 4>& random) const = 0;
};

// With probability `rate`, a label from the classes of its group.
class GroupDraw : public LabelDraw {
 public:
  GroupDraw(const LabelNoiseOptions& options, const Dataset& dataset)
      : rate_(options.rate), is_other_(options.new_label == LabelNoiseOptions::NewLabel::kOther) {
    const int64_t num_classes = dataset.num_classes();
    for (int64_t c = 0; c < num_classes; ++c) group_of_.push_back(group_of(c, options, dataset));
    members_.resize(static_cast<size_t>(num_classes));
    for (int64_t c = 0; c < num_classes; ++c) members_.at(group_of_[static_cast<size_t>(c)]).push_back(c);
  }

  double chance_of_change(int64_t label) const override {
    const size_t size = group(label).size();
    return rate_ * (is_other_ && size > 1 ? 1.0 : 1.0 - 1.0 / static_cast<double>(size));
  }
  int64_t draw(int64_t label, const std::array<uint32_t, 4>& random) const override {
    if (unit_double(random[0], random[1]) >= rate_) return label;
    const auto& classes = group(label);
    const auto size = static_cast<uint32_t>(classes.size());
    if (!is_other_) return classes[uniform_below(random[2], random[3], size)];
    if (size == 1) return label;
    // The classes of a group ascend. The last one stands for the label itself.
    const int64_t drawn = classes[uniform_below(random[2], random[3], size - 1)];
    return drawn == label ? classes.back() : drawn;
  }

 private:
  static size_t group_of(int64_t c, const LabelNoiseOptions& options, const Dataset& dataset) {
    if (options.kind == "superclass") return static_cast<size_t>(dataset.superclass_of[static_cast<size_t>(c)]);
    if (options.kind == "index_block") return static_cast<size_t>(c / options.block_size);
    if (options.kind == "uniform") return 0;
    throw std::logic_error("no label noise '" + options.kind + "'");
  }
  const std::vector<int64_t>& group(int64_t label) const { return members_[group_of_.at(static_cast<size_t>(label))]; }

  double rate_;
  bool is_other_;
  std::vector<size_t> group_of_;               // [classes]
  std::vector<std::vector<int64_t>> members_;  // of every group
};

// A label drawn with the probabilities of the old label's row in a matrix.
class ConfusionDraw : public LabelDraw {
 public:
  ConfusionDraw(const LabelNoiseOptions& options, const Dataset& dataset)
      : classes_(dataset.num_classes()), sums_(read_confusion_matrix(options.matrix, classes_)) {
    for (int64_t y = 0; y < classes_; ++y) {
      double* row = &sums_[static_cast<size_t>(y * classes_)];
      // The row may add up to slightly less or more than 1: the file has only some digits.
      const double sum = std::accumulate(row, row + classes_, 0.0);
      stays_.push_back(row[y] / sum);
      last_.push_back(0);
      for (int64_t c = 0; c < classes_; ++c) {
        if (row[c] > 0) last_.back() = c;
      }
      std::partial_sum(row, row + classes_, row);
    }
  }

  double chance_of_change(int64_t label) const override { return 1.0 - stays_.at(static_cast<size_t>(label)); }
  int64_t draw(int64_t label, const std::array<uint32_t, 4>& random) const override {
    const double* row = &sums_[static_cast<size_t>(label * classes_)];
    const double at = unit_double(random[0], random[1]) * row[classes_ - 1];
    // The first class whose sum is above `at`. A product that was rounded up must not choose a class of probability 0.
    return std::min<int64_t>(std::upper_bound(row, row + classes_, at) - row, last_[static_cast<size_t>(label)]);
  }

 private:
  int64_t classes_;
  std::vector<double> sums_;   // [classes, classes], in each row the sum up to and including a class
  std::vector<double> stays_;  // [classes] P(label | label)
  std::vector<int64_t> last_;  // [classes] the last class of a probability above 0
};

std::unique_ptr<const LabelDraw> make_label_draw(const LabelNoiseOptions& options, const Dataset& dataset) {
  if (options.kind == "confusion") return std::make_unique<ConfusionDraw>(options, dataset);
  return std::make_unique<GroupDraw>(options, dataset);
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

config::Section label_noise_section() {
  config::Keys index_block = rate_keys();
  index_block.push_back(
      config::key("block_size", &LabelNoiseOptions::block_size, 5, "Consecutive class indices in a block.")
          .at_least(2)
          .in("classes"));
  const config::Keys confusion = label_noise_keys(
      config::key("matrix", &LabelNoiseOptions::matrix, "",
                  "Text file with one line per class y, the probabilities P(new label | label y) of all classes.")
          .not_empty());
  return {
      .name = "data.label_noise",
      .help = "Artificial label noise, in the training split only.",
      .keys = {},
      .selector = "kind",
      .default_variant = "none",
      .variants =
          {
              {"none", "No label noise.", {}},
              {"superclass", "A new label is drawn from the label's superclass (Garcin et al. 2022, section 4).",
               rate_keys()},
              {"index_block",
               "A new label is drawn from the label's block of consecutive class indices, as in the code behind the "
               "published CIFAR-100 results.",
               index_block},
              {"uniform", "A new label is drawn from all classes.", rate_keys()},
              {"confusion", "A new label is drawn from the label's row of a confusion matrix, which a file gives.",
               confusion},
          },
  };
}

LabelNoiseOptions read_label_noise(const config::Config& config) {
  LabelNoiseOptions options;
  const auto& kind = config.get<std::string>("data.label_noise.kind");
  if (kind != "none") options = config.read<LabelNoiseOptions>("data.label_noise");
  if (options.seed == kRunSeed) options.seed = config.get<int64_t>("seed");
  options.kind = kind;
  return options;
}

std::vector<double> read_confusion_matrix(const std::filesystem::path& file, int64_t num_classes) {
  TextLines lines(file);
  std::vector<double> numbers;
  int64_t rows = 0;
  while (lines.next()) {
    std::string_view text = std::string_view(lines.line()).substr(0, lines.line().find('#'));
    text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
    if (text.empty()) continue;
    const std::string wrong = ++rows > num_classes
                                  ? fmt::format("a line too many; expected {}, one a class", num_classes)
                                  : read_row(text, num_classes, numbers);
    if (!wrong.empty()) lines.fail(wrong);
  }
  if (rows < num_classes) {
    throw DataError(
        fmt::format("'{}' has {} lines of numbers, expected {}, one a class", file.string(), rows, num_classes));
  }
  return numbers;
}

LabelNoiseReport apply_label_noise(const LabelNoiseOptions& options, Dataset& dataset) {
  std::vector<int64_t>& labels = dataset.train.labels;
  LabelNoiseReport report;
  report.kind = options.kind;
  if (options.kind == "none") {
    report.digest = digest_of(labels);
    return report;
  }
  if (options.kind == "superclass" && dataset.superclass_of.empty()) {
    throw KeyError("data.label_noise.kind",
                   fmt::format("data set '{}' has no superclasses; choose index_block or uniform, or name them by "
                               "data.superclasses",
                               dataset.name));
  }
  if (!dataset.train.label_sets.empty()) {
    throw KeyError("data.label_noise.kind", fmt::format("data set '{}' has several labels an image, and label noise "
                                                        "would change only one of them; expected none",
                                                        dataset.name));
  }

  const std::unique_ptr<const LabelDraw> noise = make_label_draw(options, dataset);
  // Summed over classes and not over samples: a sum of a million terms would lose digits.
  const std::vector<int64_t> counts = count_classes(dataset.train, dataset.num_classes());
  double expected_changes = 0;
  for (int64_t c = 0; c < dataset.num_classes(); ++c) {
    expected_changes += static_cast<double>(counts[static_cast<size_t>(c)]) * noise->chance_of_change(c);
  }

  int64_t stayed_in_superclass = 0;
  for (size_t i = 0; i < labels.size(); ++i) {
    const int64_t label = labels[i];
    const auto id = static_cast<uint32_t>(dataset.train.ids[i]);
    labels[i] = noise->draw(label, random_words(static_cast<uint64_t>(options.seed), Stream::kLabelNoise, id));
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

}  // namespace settrain
