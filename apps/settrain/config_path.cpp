#include "apps/settrain/config_path.h"

#include <vector>

#include "src/core/error.h"
#include "src/core/process.h"
#include "src/core/text.h"

namespace settrain {

namespace fs = std::filesystem;

namespace {

fs::path installed_or(const char* name, const char* in_source) {
  std::error_code ignored;
  const fs::path installed = program_file().parent_path().parent_path() / "share/settrain" / name;
  return fs::is_directory(installed, ignored) ? installed : fs::path(in_source);
}

}  // namespace

fs::path config_folder() {
  return installed_or("configs", SETTRAIN_SOURCE_CONFIGS);
}

fs::path golden_folder() {
  return installed_or("golden", SETTRAIN_SOURCE_GOLDEN);
}

fs::path find_config(const std::string& name) {
  const fs::path folder = config_folder();
  for (const fs::path& candidate : {fs::path(name), folder / name, folder / (name + ".yaml")}) {
    std::error_code ignored;
    if (fs::is_regular_file(candidate, ignored)) return candidate;
  }

  std::vector<std::string> known;
  std::error_code ignored;
  for (const auto& entry : fs::recursive_directory_iterator(folder, ignored)) {
    if (entry.path().extension() == ".yaml") known.push_back(fs::relative(entry.path(), folder).string());
  }
  throw ConfigError("there is no config file '" + name + "', neither here nor in " + folder.string() +
                    did_you_mean(name, known));
}

}  // namespace settrain
