#include "datasets/label_draw.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "datasets/confusion_matrix.h"
#include "src/core/streams.h"

namespace settrain {
namespace {

// With probability `rate`, a label from the classes of its group.
class GroupDraw : public LabelDraw {
 public:
  GroupDraw(const LabelNoiseOptions& options, const Dataset& dataset) : rate_(options.rate) {
    const int64_t num_classes = dataset.num_classes();
    for (int64_t c = 0; c < num_classes; ++c) group_of_.push_back(group_of(c, options, dataset));
    members_.resize(static_cast<size_t>(num_classes));
    for (int64_t c = 0; c < num_classes; ++c) members_.at(group_of_[static_cast<size_t>(c)]).push_back(c);
  }

  double chance_of_change(int64_t label) const override {
    return rate_ * (1.0 - 1.0 / static_cast<double>(group(label).size()));
  }
  int64_t draw(int64_t label, const std::array<uint32_t, 4>& random) const override {
    if (unit_double(random[0], random[1]) >= rate_) return label;
    const auto& classes = group(label);
    return classes[uniform_below(random[2], random[3], static_cast<uint32_t>(classes.size()))];
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
  std::vector<size_t> group_of_;               // [classes]
  std::vector<std::vector<int64_t>> members_;  // of every group
};

// A label by the probabilities of its row in a matrix.
class ConfusionDraw : public LabelDraw {
 public:
  ConfusionDraw(const LabelNoiseOptions& options, const Dataset& dataset)
      : classes_(dataset.num_classes()), sums_(read_confusion_matrix(options.matrix, classes_)) {
    for (int64_t y = 0; y < classes_; ++y) {
      double* row = &sums_[static_cast<size_t>(y * classes_)];
      // Of the row's own sum, which is 1 but for the digits that the file has.
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
    // The first class whose sum is above; never one of probability 0, not even where the product was rounded up.
    return std::min<int64_t>(std::upper_bound(row, row + classes_, at) - row, last_[static_cast<size_t>(label)]);
  }

 private:
  int64_t classes_;
  std::vector<double> sums_;   // [classes, classes], in each row the sum up to and with a class
  std::vector<double> stays_;  // [classes] P(label | label)
  std::vector<int64_t> last_;  // [classes] the last class of a probability above 0
};

}  // namespace

std::unique_ptr<const LabelDraw> make_label_draw(const LabelNoiseOptions& options, const Dataset& dataset) {
  if (options.kind == "confusion") return std::make_unique<ConfusionDraw>(options, dataset);
  return std::make_unique<GroupDraw>(options, dataset);
}

}  // namespace settrain
