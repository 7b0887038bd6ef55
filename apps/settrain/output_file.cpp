#include "apps/settrain/output_file.h"

#include <fmt/format.h>

#include "src/core/error.h"
#include "src/run_folder/run_folder.h"

namespace settrain {

void refuse_existing(const std::filesystem::path& file, bool overwrite) {
  if (!std::filesystem::exists(file)) return;
  if (!std::filesystem::is_regular_file(file)) throw Error(fmt::format("'{}' exists and is no file", file.string()));
  const auto folder = std::filesystem::absolute(file).parent_path();
  if (folder.filename() == "checkpoints" && RunFolder::is_there(folder.parent_path())) {
    throw Error(fmt::format("'{}' is a checkpoint of a run", file.string()));
  }
  if (!overwrite) throw Error(fmt::format("'{}' is there already; --overwrite replaces it", file.string()));
}

}  // namespace settrain
