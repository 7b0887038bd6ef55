#include <fmt/ranges.h>

#include <algorithm>
#include <string>

#include "src/core/error.h"
#include "src/core/files.h"
#include "src/core/table_text.h"
#include "src/core/text.h"
#include "src/inference/predict.h"
#include "src/inference/set_maker.h"

namespace settrain {
namespace {

constexpr const char *kJsonLines = ".jsonl", *kCsv = ".csv";

// The texts at these places, joined.
std::string joined(const std::vector<int64_t>& places, const std::vector<std::string>& all) {
  std::vector<std::string> texts;
  for (const int64_t place : places) texts.push_back(all[static_cast<size_t>(place)]);
  return fmt::format("{}", fmt::join(texts, ";"));
}

class JsonLines : public PredictionWriter {
 public:
  JsonLines(const std::filesystem::path& file, const SetMaker& maker, bool has_groups)
      : output_(file), has_groups_(has_groups), sets_(maker) {}

  void write(const Prediction& row) override {
    std::string line = fmt::format("{{\"{}\":{}", has_groups_ ? "group" : "path", json_text(row.name));
    if (has_groups_) line += fmt::format(",\"images\":{}", row.images);
    if (has_groups_ && row.unanswered > 0) line += fmt::format(",\"unreadable\":{}", row.unanswered);
    if (!row.error.empty()) line += ",\"error\":" + json_text(row.error);
    if (!row.sets.empty()) line += ",\"sets\":" + sets_(row.sets);
    output_.write(line + "}\n");
  }

  void finish() override { output_.commit(); }

 private:
  AtomicFile output_;
  bool has_groups_;
  SetsAsJson sets_;
};

class CsvTable : public PredictionWriter {
 public:
  CsvTable(const std::filesystem::path& file, const SetMaker& maker, bool has_groups)
      : output_(file), has_groups_(has_groups), maker_(maker) {
    std::vector<std::string> head{has_groups ? "group" : "path"};
    if (has_groups) head.insert(head.end(), {"images", "unreadable"});
    head.insert(head.end(), {"rule", "size", "names", "classes", "probabilities"});
    if (maker.has_nodes()) head.insert(head.end(), {"nodes", "node_ranks", "node_probabilities"});
    if (maker.form().p_values) head.push_back("p_values");
    if (maker.form().unknown > 0) head.push_back("unknown");
    head.push_back("error");
    output_.write(csv_row(head));
  }

  void write(const Prediction& row) override {
    std::vector<std::string> front{row.name};
    if (has_groups_) front.insert(front.end(), {std::to_string(row.images), std::to_string(row.unanswered)});
    std::string lines;
    for (size_t i = 0; i < maker_.rule_names().size(); ++i) {
      std::vector<std::string> cells = front;
      cells.push_back(maker_.rule_names()[i]);
      const PredictedSet set = row.sets.empty() ? PredictedSet() : row.sets[i];
      cells.insert(cells.end(), {row.sets.empty() ? "" : std::to_string(set.members.size()),
                                 joined(set.members, maker_.names()), fmt::format("{}", fmt::join(set.members, ";")),
                                 fmt::format("{}", fmt::join(set.probabilities, ";"))});
      if (maker_.has_nodes()) {
        cells.insert(cells.end(), {joined(set.nodes, maker_.node_names()), joined(set.nodes, maker_.node_ranks()),
                                   fmt::format("{}", fmt::join(set.node_probabilities, ";"))});
      }
      if (maker_.form().p_values) cells.push_back(fmt::format("{}", fmt::join(set.p_values, ";")));
      if (maker_.form().unknown > 0) cells.emplace_back(set.is_unknown ? "true" : "");
      cells.push_back(row.error);
      lines += csv_row(cells);
    }
    output_.write(lines);
  }

  void finish() override { output_.commit(); }

 private:
  AtomicFile output_;
  bool has_groups_;
  const SetMaker& maker_;
};

constexpr size_t kShownMembers = 5, kWidestName = 48, kGap = 2;

std::string padded(const std::string& text, size_t width) {
  const size_t length = count_characters(text);
  return text + std::string((length < width ? width - length : 0) + kGap, ' ');
}

class TextTable : public PredictionWriter {
 public:
  TextTable(std::ostream& output, const SetMaker& maker, bool has_groups, size_t widest_name)
      : output_(output), has_groups_(has_groups), maker_(maker) {
    const char* first = has_groups ? "group" : "image";
    name_width_ = std::max(std::min(widest_name, kWidestName), std::string(first).size());
    for (const std::string& rule : maker.rule_names()) rule_width_ = std::max(rule_width_, rule.size());
    output_ << padded(first, name_width_) << (has_groups ? "images  " : "") << padded("rule", rule_width_)
            << "size  set\n";
  }

  void write(const Prediction& row) override {
    const std::string name = printable(row.name);
    if (row.sets.empty()) {
      output_ << padded(name, name_width_) << "error: " << printable(row.error) << std::endl;
      return;
    }
    for (size_t i = 0; i < maker_.rule_names().size(); ++i) {
      output_ << padded(i == 0 ? name : "", name_width_) << (has_groups_ ? images_cell(row, i == 0) : "")
              << padded(maker_.rule_names()[i], rule_width_) << fmt::format("{:>4}  ", row.sets[i].members.size())
              << members_text(row.sets[i]) << (row.sets[i].is_unknown ? "; looks like no known class" : "") << "\n";
    }
    output_.flush();  // before a progress bar comes back
  }

  void finish() override {}
  bool is_shown() const override { return true; }

 private:
  static std::string images_cell(const Prediction& row, bool is_first) {
    return is_first ? fmt::format("{:>6}  ", row.images) : std::string(6 + kGap, ' ');
  }

  // The nodes where the answer is given by them: a genus with its rank.
  std::string members_text(const PredictedSet& set) const {
    if (set.members.empty()) return "none";
    const bool by_nodes = !set.nodes.empty();
    const std::vector<int64_t>& all = by_nodes ? set.nodes : set.members;
    const std::vector<float>& probabilities = by_nodes ? set.node_probabilities : set.probabilities;
    std::string text;
    for (size_t i = 0; i < all.size() && i < kShownMembers; ++i) {
      const auto place = static_cast<size_t>(all[i]);
      const std::string& name = (by_nodes ? maker_.node_names() : maker_.names())[place];
      const bool is_inner = by_nodes && maker_.node_ranks()[place] != maker_.node_ranks().front();
      text += fmt::format("{}{}{} {:.2f}", i == 0 ? "" : ", ", name,
                          is_inner ? fmt::format(" ({})", maker_.node_ranks()[place]) : "", probabilities[i]);
      if (!by_nodes && !set.p_values.empty()) text += fmt::format(" (p {:.3f})", set.p_values[i]);
    }
    if (all.size() > kShownMembers) text += fmt::format(", ... and {} more", all.size() - kShownMembers);
    return text;
  }

  std::ostream& output_;
  bool has_groups_;
  const SetMaker& maker_;
  size_t name_width_ = 0, rule_width_ = 4;  // of the word rule
};

}  // namespace

void check_prediction_file(const std::filesystem::path& file) {
  if (file.extension() == kJsonLines || file.extension() == kCsv) return;
  throw ConfigError(fmt::format("--out {}: expected a name that ends in {} or {}", file.string(), kJsonLines, kCsv));
}

std::unique_ptr<PredictionWriter> prediction_file(const std::filesystem::path& file, const SetMaker& maker,
                                                  bool has_groups) {
  check_prediction_file(file);
  if (file.extension() == kJsonLines) return std::make_unique<JsonLines>(file, maker, has_groups);
  return std::make_unique<CsvTable>(file, maker, has_groups);
}

std::unique_ptr<PredictionWriter> prediction_table(std::ostream& output, const SetMaker& maker, bool has_groups,
                                                   size_t widest_name) {
  return std::make_unique<TextTable>(output, maker, has_groups, widest_name);
}

}  // namespace settrain
