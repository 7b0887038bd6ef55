#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "src/core/error.h"
#include "src/core/suggest.h"
#include "src/table/table.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;

// "thesis/4.10" comes after "thesis/4.9".
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

}  // namespace

std::vector<std::string> table_names(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::recursive_directory_iterator(folder, ignored)) {
    if (entry.path().extension() != ".yaml") continue;
    names.push_back((entry.path().parent_path().filename() / entry.path().stem()).string());
  }
  std::sort(names.begin(), names.end(), comes_before);
  return names;
}

fs::path find_table(const fs::path& folder, const std::string& name) {
  std::error_code ignored;
  if (name.ends_with(".yaml") && fs::is_regular_file(name, ignored)) return name;
  std::vector<std::string> known = table_names(folder);
  if (std::find(known.begin(), known.end(), name) != known.end()) return folder / (name + ".yaml");
  // Another printed table of the same runs.
  const size_t slash = name.find('/');
  for (const std::string& other : table_names(folder)) {
    if (slash == std::string::npos || !other.starts_with(name.substr(0, slash + 1))) continue;
    const fs::path file = folder / (other + ".yaml");
    for (const TablePart& part : read_table(file, "paper").parts) {
      if (part.number == name.substr(slash + 1)) return file;
      known.push_back(name.substr(0, slash + 1) + part.number);
    }
  }
  const std::string near = nearest_name(name, known);
  throw ConfigError(fmt::format("there is no table '{}'{}; `settrain table list` has all of them", name,
                                near.empty() ? "" : "; did you mean '" + near + "'?"));
}

}  // namespace settrain
