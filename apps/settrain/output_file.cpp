#include "apps/settrain/output_file.h"

#include <fmt/format.h>

#include "src/core/error.h"

namespace settrain {

void refuse_existing(const std::filesystem::path& file, bool overwrite) {
  if (!std::filesystem::exists(file)) return;
  if (!std::filesystem::is_regular_file(file)) throw Error(fmt::format("'{}' is there and no file", file.string()));
  if (!overwrite) throw Error(fmt::format("'{}' is there already; --overwrite replaces it", file.string()));
}

}  // namespace settrain
