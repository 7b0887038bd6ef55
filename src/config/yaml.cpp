#include "src/config/yaml.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <utility>

#include "src/core/text.h"

namespace settrain::config {
namespace {

constexpr int kMostNodes = 10'000;
constexpr size_t kDeepestNode = 50;

// Builds the tree of YamlNode from the parser's events. yaml-cpp's own tree hides tags and further documents, and
// shares aliased nodes, so that walking it can take for ever. Here aliases are copied and counted. Refusals are thrown
// as YAML::ParserException, like the parser's own.
class YamlTreeBuilder : public YAML::EventHandler {
 public:
  // `source` must outlive the builder.
  explicit YamlTreeBuilder(const Source& source)
      : source_(source), root_{YamlNode::Kind::kNull, source.at(1, 1), {}, false, {}, {}} {}

  // The finished tree.
  YamlNode take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) throw YAML::ParserException(mark, "a second YAML document; a file holds one");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    finish(make(mark, YamlNode::Kind::kNull), anchor, 1, 0);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) throw YAML::ParserException(mark, "an alias within its own anchor");
    const Anchored& anchored = found->second;
    count(mark, anchored.nodes);
    nest(mark, anchored.levels);
    finish(anchored.node, 0, anchored.nodes, anchored.levels);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_tag(mark, tag);
    // yaml-cpp makes one byte of each of these escapes, and so no UTF-8.
    if (!is_utf8(value)) throw YAML::ParserException(mark, "for the escapes \\_ and \\N write \\u00a0 and \\u0085");
    YamlNode node = make(mark, YamlNode::Kind::kScalar);
    node.text = value;
    node.quoted = tag == "!";
    finish(std::move(node), anchor, 1, 0);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    start(mark, tag, anchor, YamlNode::Kind::kList);
  }
  void OnSequenceEnd() override { end(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    start(mark, tag, anchor, YamlNode::Kind::kMap);
  }
  void OnMapEnd() override { end(); }

 private:
  struct Open {
    YamlNode node;
    YAML::anchor_t anchor;
    int nodes_before;
    size_t levels = 0;  // of its children
  };
  struct Anchored {
    YamlNode node;
    int nodes;
    size_t levels;
  };

  // "?" and "!" are the parser's words for plain and quoted.
  static void refuse_tag(const YAML::Mark& mark, const std::string& tag) {
    if (tag.empty() || tag == "?" || tag == "!") return;
    throw YAML::ParserException(mark, "the tag " + in_quotes(tag) + " is not supported, remove it");
  }

  void count(const YAML::Mark& mark, int nodes) {
    nodes_ += nodes;
    if (nodes_ > kMostNodes) throw YAML::ParserException(mark, fmt::format("more than {} values", kMostNodes));
  }

  // Refuses a node of so many levels at this place.
  void nest(const YAML::Mark& mark, size_t levels) {
    if (stack_.size() + levels > kDeepestNode) {
      throw YAML::ParserException(mark, fmt::format("nested deeper than {} levels", kDeepestNode));
    }
  }

  YamlNode make(const YAML::Mark& mark, YamlNode::Kind kind) {
    count(mark, 1);
    return {kind, source_.at(mark.line + 1, mark.column + 1), {}, false, {}, {}};
  }

  void start(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, YamlNode::Kind kind) {
    refuse_tag(mark, tag);
    nest(mark, 1);
    const int before = nodes_;
    stack_.push_back({make(mark, kind), anchor, before});
  }

  void end() {
    Open ended = std::move(stack_.back());
    stack_.pop_back();
    finish(std::move(ended.node), ended.anchor, nodes_ - ended.nodes_before, ended.levels + 1);
  }

  // Hangs a complete node below its parent; in a map, keys and values take turns.
  void finish(YamlNode node, YAML::anchor_t anchor, int nodes, size_t levels) {
    if (anchor != 0) anchors_.insert_or_assign(anchor, Anchored{node, nodes, levels});
    if (stack_.empty()) {
      root_ = std::move(node);
      return;
    }
    stack_.back().levels = std::max(stack_.back().levels, levels);
    YamlNode& parent = stack_.back().node;
    const bool is_key = parent.is(YamlNode::Kind::kMap) && parent.keys.size() == parent.values.size();
    (is_key ? parent.keys : parent.values).push_back(std::move(node));
  }

  const Source& source_;
  YamlNode root_;
  int documents_ = 0, nodes_ = 0;
  std::vector<Open> stack_;
  std::map<YAML::anchor_t, Anchored> anchors_;
};

std::string line_at(const std::string& text, int line) {
  std::istringstream lines(text);
  std::string found;
  for (int i = 0; i <= line; ++i) {
    if (!std::getline(lines, found)) return "";
  }
  return found;
}

// Advice on mistakes that the parser's message does not name.
std::string advice(const std::string& message, const std::string& text, int line) {
  if (message == YAML::ErrorMsg::EOF_IN_SCALAR) return " (a quote is never closed)";
  for (int i = line; i >= std::max(0, line - 1); --i) {
    const std::string suspect = line_at(text, i);
    const size_t indent = suspect.find_first_not_of(" \t");
    if (suspect.substr(0, indent).find('\t') != std::string::npos) {
      return fmt::format(" (line {} is indented with a tab, use spaces)", i + 1);
    }
    const size_t reference = suspect.find("${");
    if (reference != std::string::npos && suspect.find_first_of("{[") < reference) {
      return " (within { } and [ ], put text with ${...} in quotes)";
    }
  }
  return "";
}

// yaml-cpp ends a file at byte 4, and guesses other encodings.
bool check_characters(const std::string& text, const Source& source, Problems& problems) {
  int line = 1, column = 1;
  for (size_t position = 0; position < text.size();) {
    const auto code = next_code_point(text, position);
    if (!code) {
      problems.add(source.at(line, column), "", "not UTF-8 text");
      return false;
    }
    const bool control = (*code < 0x20 && *code != '\t' && *code != '\n' && *code != '\r') || *code == 0x7F;
    if (control) {
      problems.add(source.at(line, column), "",
                   fmt::format("the control character 0x{:02X} is no YAML", static_cast<int>(*code)));
      return false;
    }
    column = *code == '\n' ? 1 : column + 1;
    line += *code == '\n';
  }
  return true;
}

}  // namespace

Origin Source::at(int line, int column) const {
  if (!has_lines) return {name, number, 0, 0};
  return {fmt::format("{}:{}:{}", name, line, column), number, line, column};
}

std::optional<YamlNode> parse_yaml(const std::string& text, const Source& source, Problems& problems) {
  if (!check_characters(text, source, problems)) return std::nullopt;
  YamlTreeBuilder builder(source);
  // yaml-cpp takes a quote that is never closed for closed where the file ends in a line break; so it ends in a
  // comment.
  const std::string lines = text.empty() || text.back() == '\n' ? text : text + "\n";
  try {
    std::istringstream stream(lines + "#");
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& error) {
    const bool at_end = error.mark.line == std::count(lines.begin(), lines.end(), '\n');
    problems.add(source.at(error.mark.line + 1, at_end ? 1 : error.mark.column + 1), "",
                 "YAML: " + on_one_line(error.msg) + advice(error.msg, text, error.mark.line));
    return std::nullopt;
  }
  return builder.take();
}

}  // namespace settrain::config
