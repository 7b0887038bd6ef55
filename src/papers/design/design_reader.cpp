#include "src/papers/design/design_reader.h"

#include <fmt/format.h>

#include <algorithm>

namespace settrain {

using Kind = config::YamlNode::Kind;

namespace {

// Where the first {word} begins; ${env:NAME} is none.
size_t find_word(const std::string& text) {
  for (size_t at = text.find('{'); at != std::string::npos; at = text.find('{', at + 1)) {
    if (at == 0 || text[at - 1] != '$') return at;
  }
  return std::string::npos;
}

}  // namespace

void DesignReader::read_key(const std::string& key, const YamlNode& node) {
  if (key == "paper") design_.paper = line(node);
  if (key == "title") design_.title = line(node);
  if (key == "base") design_.base = folder_ / text(node);
  if (key == "set") design_.common = raw_settings(node);
  if (key == "seeds") design_.seeds = values(node);
  if (key == "rows") design_.rows = axis(node);
  if (key == "columns") design_.columns = axis(node);
}

void DesignReader::read_preset_key(const std::string& key, const YamlNode& node) {
  if (key == "base") design_.base = folder_ / text(node);
  if (key == "set") design_.preset_settings = raw_settings(node);
  if (key == "seeds") design_.seeds = values(node);
  if (key == "says") design_.says = line(node);
}

void DesignReader::check_words(const YamlNode& root, const std::vector<WantedCell>& cells) {
  for (const WantedCell& cell : cells) {
    for (const auto& [key, value] : design_.settings(cell.row, cell.column)) check_word(root, key + ": " + value);
    for (const auto* names : {&cell.metrics, &cell.set_sizes, &cell.logged, &cell.selects}) {
      for (const std::string& name : *names) check_word(root, name);
    }
  }
}

std::vector<std::optional<size_t>> DesignReader::keep(DesignAxis& axis, const YamlNode& node, const std::string& what) {
  std::vector<std::optional<size_t>> places(axis.each.size());
  for (size_t i = 0; i < places.size(); ++i) places[i] = i;
  if (!node.is(Kind::kList) || node.values.empty()) {
    problem(node, "expected a list of labels or entries");
    return places;
  }
  std::vector<bool> kept(axis.each.size(), false);
  for (const YamlNode& element : node.values) {
    const DesignEntry given = element.is(Kind::kMap) ? entry(element) : DesignEntry{text(element)};
    const auto at = axis.find(given.label);
    if (!at) {
      problem(element, fmt::format("there is no {} {}", what, in_quotes(given.label)));
      continue;
    }
    kept[*at] = true;
    if (element.is(Kind::kMap)) axis.each[*at] = given;
  }
  std::vector<DesignEntry> left;
  for (size_t i = 0; i < kept.size(); ++i) {
    places[i] = kept[i] ? std::optional(left.size()) : std::nullopt;
    if (kept[i]) left.push_back(std::move(axis.each[i]));
  }
  axis.each = std::move(left);
  return places;
}

std::string DesignReader::line(const YamlNode& node) {
  std::string all = text(node);
  while (all.ends_with('\n')) all.pop_back();
  std::replace(all.begin(), all.end(), '\n', ' ');
  return all;
}

void DesignReader::check_word(const YamlNode& root, const std::string& text) {
  if (find_word(text) == std::string::npos || !said_.insert(text).second) return;
  problem(root, fmt::format("{}: no `let` has this word", text));
}

// Values with {words} become what the words stand for: quotes, which YAML asks for, are no part of them.
Settings DesignReader::raw_settings(const YamlNode& node) {
  Settings all;
  each(node, {}, [&](const std::string& key, const YamlNode& given) {
    refuse_reserved(key, given);
    if (given.is(Kind::kMap)) {  // braces are words
      problem(given,
              fmt::format("expected a value or a list; a number that changes by epoch is {0}.from and {0}.to", key));
      return;
    }
    const bool has_word = given.quoted && find_word(given.text) != std::string::npos;
    all.emplace_back(key, has_word ? given.text : value(given));
    design_.places.emplace(all.back(), given.origin);
  });
  return all;
}

Settings DesignReader::words(const YamlNode& node) {
  Settings all;
  each(node, {}, [&](const std::string& word, const YamlNode& is) { all.emplace_back(word, text(is)); });
  return all;
}

DesignEntry DesignReader::entry(const YamlNode& node) {
  DesignEntry entry;
  entry.origin = node.origin;
  each(node, {"label", "set", "let"}, [&](const std::string& key, const YamlNode& given) {
    if (key == "label") entry.label = line(given);
    if (key == "set") entry.set = raw_settings(given);
    if (key == "let") entry.let = words(given);
  });
  if (entry.label.empty()) problem(node, "expected the key label");
  return entry;
}

DesignAxis DesignReader::axis(const YamlNode& node) {
  DesignAxis axis;
  each(node, {"name", "each"}, [&](const std::string& key, const YamlNode& given) {
    if (key == "name") axis.name = line(given);
    if (key != "each") return;
    if (!given.is(Kind::kList) || given.values.empty()) return problem(given, "expected a list of {label, set, let}");
    for (const YamlNode& element : given.values) {
      DesignEntry made = entry(element);
      if (axis.find(made.label)) problem(element, fmt::format("{} comes twice", in_quotes(made.label)));
      axis.each.push_back(std::move(made));
    }
  });
  return axis;
}

void DesignReader::read_design(const YamlNode& root) {
  read(root);
  problems_.throw_if_any();
  if (design_.has_preset()) {
    if (const YamlNode* preset = find_preset(root, design_.preset)) read_preset(*preset);
  }
  problems_.throw_if_any();
  finish(root);
  problems_.throw_if_any();
}

config::YamlNode parse_design(const std::filesystem::path& file, const std::string& preset, const std::string& what,
                              RunDesign& design) {
  config::Problems problems;
  auto root = config::parse_yaml(read_yaml_text(file, what), {file.string(), 0, true}, problems);
  problems.throw_if_any();
  design.file = file;
  const std::filesystem::path folder = file.lexically_normal().parent_path().filename();
  design.name = (folder == ".." ? file.stem() : folder / file.stem()).string();
  design.preset = preset;
  return std::move(*root);
}

}  // namespace settrain
