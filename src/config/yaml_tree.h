// The parser's events to a tree of YamlNode.
#pragma once

#include <yaml-cpp/eventhandler.h>

#include <map>
#include <string>
#include <vector>

#include "src/config/yaml.h"

namespace settrain::config {

/// yaml-cpp's own tree hides tags and further documents, and shares aliased nodes, so that walking it can take for
/// ever. Here aliases are copied and counted. Refusals are thrown as YAML::ParserException, like the parser's own.
class YamlTreeBuilder : public YAML::EventHandler {
 public:
  /// `source` must outlive the builder.
  explicit YamlTreeBuilder(const Source& source);

  /// The finished tree.
  YamlNode take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override;
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override;
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override;
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override;
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override;
  void OnSequenceEnd() override { end(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override;
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

  void count(const YAML::Mark& mark, int nodes);
  void nest(const YAML::Mark& mark, size_t levels);
  YamlNode make(const YAML::Mark& mark, YamlNode::Kind kind);
  void start(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, YamlNode::Kind kind);
  void end();
  void finish(YamlNode node, YAML::anchor_t anchor, int nodes, size_t levels);

  const Source& source_;
  YamlNode root_;
  int documents_ = 0, nodes_ = 0;
  std::vector<Open> stack_;
  std::map<YAML::anchor_t, Anchored> anchors_;
};

}  // namespace settrain::config
