#include "src/papers/design/run_design.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <tuple>

#include "src/core/error.h"
#include "src/core/text.h"
#include "src/run_folder/run_folder.h"

namespace settrain {

namespace fs = std::filesystem;

std::string with_words(std::string text, const Settings& let) {
  for (const auto& [word, value] : let) {
    const std::string braced = "{" + word + "}";
    for (size_t at = text.find(braced); at != std::string::npos; at = text.find(braced, at + value.size())) {
      text.replace(at, braced.size(), value);
    }
  }
  return text;
}

std::optional<size_t> DesignAxis::find(const std::string& label) const {
  const auto found =
      std::find_if(each.begin(), each.end(), [&](const DesignEntry& entry) { return entry.label == label; });
  return found == each.end() ? std::nullopt : std::optional(static_cast<size_t>(found - each.begin()));
}

std::string RunDesign::file_name() const {
  std::string text = name;
  std::replace(text.begin(), text.end(), '/', '-');
  return has_preset() ? text + "-" + preset : text;
}

std::string RunDesign::substitute(const std::string& text, size_t row, size_t column) const {
  return with_words(with_words(text, rows.each[row].let), columns.each[column].let);
}

Settings RunDesign::written_settings(size_t row, size_t column) const {
  Settings all;
  for (const Settings* some : {&common, &rows.each[row].set, &columns.each[column].set, &preset_settings}) {
    for (const auto& [key, value] : *some) set(all, key, value);
  }
  return all;
}

Settings RunDesign::settings(size_t row, size_t column) const {
  Settings all = written_settings(row, column);
  for (auto& [key, value] : all) value = substitute(value, row, column);
  return all;
}

std::vector<std::string> RunDesign::places_of_settings(size_t row, size_t column) const {
  std::vector<std::string> all;
  for (const auto& setting : written_settings(row, column)) all.push_back(places.at(setting).text);
  return all;
}

void add_once(std::vector<std::string>& list, const std::string& text) {
  if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(text);
}

std::vector<std::string> all_selects(const std::vector<WantedCell>& cells) {
  std::vector<std::string> selects;
  for (const WantedCell& cell : cells) {
    for (const std::string& select : cell.selects) add_once(selects, select);
  }
  // A metric first: the sweep reports it of every run.
  std::stable_partition(selects.begin(), selects.end(),
                        [](const std::string& select) { return select != RunFolder::kLast; });
  return selects;
}

Grid grid_of(const RunDesign& design, const std::vector<WantedCell>& cells) {
  Grid grid;
  grid.base = design.base;
  grid.seeds = design.seeds;
  grid.select = design.selects.front();
  grid.also.assign(design.selects.begin() + 1, design.selects.end());
  GridStep step;
  for (const WantedCell& cell : cells) {
    Settings settings = design.settings(cell.row, cell.column);
    if (std::find(step.list.begin(), step.list.end(), settings) == step.list.end()) {
      step.list.push_back(std::move(settings));
    }
  }
  grid.steps = {std::move(step)};
  return grid;
}

bool comes_before(const std::string& a, const std::string& b) {
  const auto parts = [](const std::string& name) {
    const size_t slash = name.find('/');
    const std::string number = name.substr(slash + 1);
    const size_t point = number.find('.');
    const auto value = [](const std::string& digits) { return std::atoi(digits.c_str()); };
    return std::tuple(name.substr(0, slash), value(number),
                      point == std::string::npos ? 0 : value(number.substr(point + 1)), number);
  };
  return parts(a) < parts(b);
}

std::vector<std::string> design_names(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::recursive_directory_iterator(folder, ignored)) {
    if (entry.path().extension() != ".yaml") continue;
    names.push_back((entry.path().parent_path().filename() / entry.path().stem()).string());
  }
  std::sort(names.begin(), names.end(), comes_before);
  return names;
}

fs::path find_design(const fs::path& folder, const std::string& name, const std::string& what,
                     const std::function<std::vector<std::string>(const fs::path&)>& numbers) {
  std::error_code ignored;
  if (name.ends_with(".yaml") && fs::is_regular_file(name, ignored)) return name;
  const std::vector<std::string> names = design_names(folder);
  if (std::find(names.begin(), names.end(), name) != names.end()) return folder / (name + ".yaml");
  std::vector<std::string> known = names;
  const std::string paper = name.substr(0, name.find('/') + 1);
  for (const std::string& other : names) {
    if (paper.empty() || !other.starts_with(paper)) continue;
    const fs::path file = folder / (other + ".yaml");
    for (const std::string& number : numbers(file)) {
      if (paper + number == name) return file;
      known.push_back(paper + number);
    }
  }
  throw ConfigError(fmt::format("there is no {0} '{1}'{2}; `settrain {0} list` has all of them", what, name,
                                did_you_mean(name, known)));
}

}  // namespace settrain
