#include "src/data_tools/downloads.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/core/error.h"
#include "src/core/human.h"
#include "src/core/suggest.h"
#include "src/data_tools/checksum.h"

namespace settrain {
namespace {

std::string size_of(const RemoteFile& file) {
  if (file.size == 0) return "not known";
  return fmt::format("{} ({} bytes)", format_bytes(file.size), format_count(static_cast<int64_t>(file.size)));
}

}  // namespace

std::vector<Download> downloads(const DatasetRegistry& datasets) {
  std::vector<Download> all;
  for (const DatasetEntry& entry : datasets.entries()) {
    if (entry.download) all.push_back(*entry.download);
  }
  return all;
}

Download find_download(const DatasetRegistry& datasets, const std::string& name) {
  std::vector<std::string> names;
  for (const Download& download : downloads(datasets)) {
    if (download.name == name) return download;
    names.push_back(download.name);
  }
  const std::string near = nearest_name(name, names);
  throw ConfigError(fmt::format("data fetch: there is no data set '{}' to fetch{}; there are {}", name,
                                near.empty() ? "" : ", did you mean '" + near + "'?", fmt::join(names, ", ")));
}

std::string describe(const Download& download, const std::filesystem::path& to) {
  std::string text = fmt::format("{}\n  page      {}\n", download.name, download.page);
  for (const RemoteFile& file : download.files) {
    text += fmt::format("  source    {}\n  size      {}\n  checksum  {}\n", file.url, size_of(file),
                        file.checksum.known() ? checksum_text(file.checksum)
                                              : "not recorded here; the page has it, and --md5 takes it");
  }
  if (download.files.empty()) text += "  source    cannot be fetched: registration\n";
  return text + fmt::format("  licence   {}\n  goes to   {}\n", download.licence, (to / download.folder).string());
}

std::string config_line(const Download& download, const std::filesystem::path& folder) {
  return fmt::format("data: {{name: {}, root: \"{}\"}}", download.name, folder.string());
}

}  // namespace settrain
