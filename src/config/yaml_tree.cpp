#include "src/config/yaml_tree.h"

#include <fmt/format.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>

#include <algorithm>
#include <utility>

#include "src/config/text.h"

namespace settrain::config {
namespace {

constexpr int kMostNodes = 10'000;
constexpr size_t kDeepestNode = 50;

// "?" and "!" are the parser's words for plain and quoted.
void refuse_tag(const YAML::Mark& mark, const std::string& tag) {
  if (tag.empty() || tag == "?" || tag == "!") return;
  throw YAML::ParserException(mark, "the tag " + in_quotes(tag) + " is not supported, remove it");
}

}  // namespace

YamlTreeBuilder::YamlTreeBuilder(const Source& source)
    : source_(source), root_{YamlNode::Kind::kNull, source.at(1, 1), {}, false, {}, {}} {}

void YamlTreeBuilder::OnDocumentStart(const YAML::Mark& mark) {
  if (++documents_ > 1) throw YAML::ParserException(mark, "a second YAML document; a file holds one");
}

void YamlTreeBuilder::OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) {
  finish(make(mark, YamlNode::Kind::kNull), anchor, 1, 0);
}

void YamlTreeBuilder::OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                               const std::string& value) {
  refuse_tag(mark, tag);
  // yaml-cpp makes one byte of each of these escapes, and so no UTF-8.
  if (!is_utf8(value)) throw YAML::ParserException(mark, "for the escapes \\_ and \\N write \\u00a0 and \\u0085");
  YamlNode node = make(mark, YamlNode::Kind::kScalar);
  node.text = value;
  node.quoted = tag == "!";
  finish(std::move(node), anchor, 1, 0);
}

void YamlTreeBuilder::OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) {
  const auto found = anchors_.find(anchor);
  if (found == anchors_.end()) throw YAML::ParserException(mark, "an alias within its own anchor");
  const Anchored& anchored = found->second;
  count(mark, anchored.nodes);
  nest(mark, anchored.levels);
  finish(anchored.node, 0, anchored.nodes, anchored.levels);
}

void YamlTreeBuilder::OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                                      YAML::EmitterStyle::value) {
  start(mark, tag, anchor, YamlNode::Kind::kList);
}

void YamlTreeBuilder::OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                                 YAML::EmitterStyle::value) {
  start(mark, tag, anchor, YamlNode::Kind::kMap);
}

void YamlTreeBuilder::count(const YAML::Mark& mark, int nodes) {
  nodes_ += nodes;
  if (nodes_ > kMostNodes) throw YAML::ParserException(mark, fmt::format("more than {} values", kMostNodes));
}

// Refuses a node of so many levels at this place.
void YamlTreeBuilder::nest(const YAML::Mark& mark, size_t levels) {
  if (stack_.size() + levels > kDeepestNode) {
    throw YAML::ParserException(mark, fmt::format("nested deeper than {} levels", kDeepestNode));
  }
}

YamlNode YamlTreeBuilder::make(const YAML::Mark& mark, YamlNode::Kind kind) {
  count(mark, 1);
  return {kind, source_.at(mark.line + 1, mark.column + 1), {}, false, {}, {}};
}

void YamlTreeBuilder::start(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                            YamlNode::Kind kind) {
  refuse_tag(mark, tag);
  nest(mark, 1);
  const int before = nodes_;
  stack_.push_back({make(mark, kind), anchor, before});
}

void YamlTreeBuilder::end() {
  Open ended = std::move(stack_.back());
  stack_.pop_back();
  finish(std::move(ended.node), ended.anchor, nodes_ - ended.nodes_before, ended.levels + 1);
}

// Hangs a complete node below its parent; of a map, keys and values take turns.
void YamlTreeBuilder::finish(YamlNode node, YAML::anchor_t anchor, int nodes, size_t levels) {
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

}  // namespace settrain::config
