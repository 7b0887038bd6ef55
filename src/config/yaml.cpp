#include "src/config/yaml.h"

#include <fmt/format.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <sstream>

#include "src/config/text.h"
#include "src/config/yaml_tree.h"

namespace settrain::config {
namespace {

std::string line_at(const std::string& text, int line) {
  std::istringstream lines(text);
  std::string found;
  for (int i = 0; i <= line; ++i) {
    if (!std::getline(lines, found)) return "";
  }
  return found;
}

// What users trip over and the parser's message does not say.
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

// yaml-cpp takes byte 4 for the end of the file and other encodings for what they may be.
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
