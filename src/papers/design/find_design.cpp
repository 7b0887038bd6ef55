#include "src/papers/design/find_design.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <tuple>

#include "src/core/error.h"
#include "src/core/text.h"

namespace settrain {

namespace fs = std::filesystem;

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
