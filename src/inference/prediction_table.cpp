#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "src/core/text.h"
#include "src/inference/prediction_writer.h"

namespace settrain {
namespace {

constexpr size_t kShownMembers = 5, kWidestName = 48, kGap = 2;

std::string padded(const std::string& text, size_t width) {
  const size_t length = count_characters(text);
  return text + std::string((length < width ? width - length : 0) + kGap, ' ');
}

class TextTable : public PredictionWriter {
 public:
  TextTable(std::ostream& output, const SetMaker& maker, bool has_groups, size_t widest_name)
      : output_(output), has_groups_(has_groups), rules_(maker.rule_names()), names_(maker.names()) {
    const char* first = has_groups ? "group" : "image";
    name_width_ = std::max(std::min(widest_name, kWidestName), std::string(first).size());
    for (const std::string& rule : rules_) rule_width_ = std::max(rule_width_, rule.size());
    output_ << padded(first, name_width_) << (has_groups ? "images  " : "") << padded("rule", rule_width_)
            << "size  set\n";
  }

  void write(const Prediction& row) override {
    const std::string name = printable(row.name);
    if (row.sets.empty()) {
      output_ << padded(name, name_width_) << "error: " << printable(row.error) << std::endl;
      return;
    }
    for (size_t i = 0; i < rules_.size(); ++i) {
      output_ << padded(i == 0 ? name : "", name_width_) << (has_groups_ ? images_cell(row, i == 0) : "")
              << padded(rules_[i], rule_width_) << fmt::format("{:>4}  ", row.sets[i].members.size())
              << members_text(row.sets[i]) << "\n";
    }
    output_.flush();  // before a progress bar comes back
  }

  void finish() override {}
  bool is_shown() const override { return true; }

 private:
  static std::string images_cell(const Prediction& row, bool is_first) {
    return is_first ? fmt::format("{:>6}  ", row.images) : std::string(6 + kGap, ' ');
  }

  std::string members_text(const PredictedSet& set) const {
    if (set.members.empty()) return "none";
    std::string text;
    for (size_t i = 0; i < set.members.size() && i < kShownMembers; ++i) {
      text += fmt::format("{}{} {:.2f}", i == 0 ? "" : ", ", names_[static_cast<size_t>(set.members[i])],
                          set.probabilities[i]);
    }
    if (set.members.size() > kShownMembers)
      text += fmt::format(", ... and {} more", set.members.size() - kShownMembers);
    return text;
  }

  std::ostream& output_;
  bool has_groups_;
  std::vector<std::string> rules_, names_;
  size_t name_width_ = 0, rule_width_ = 4;  // of the word rule
};

}  // namespace

std::unique_ptr<PredictionWriter> prediction_table(std::ostream& output, const SetMaker& maker, bool has_groups,
                                                   size_t widest_name) {
  return std::make_unique<TextTable>(output, maker, has_groups, widest_name);
}

}  // namespace settrain
