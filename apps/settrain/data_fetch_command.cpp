#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "apps/settrain/data_command.h"
#include "src/core/error.h"
#include "src/core/interrupt.h"
#include "src/data_tools/fetch.h"

namespace settrain {
namespace {

struct FetchOptions {
  std::string name, to, source, md5;
  bool dry_run = false;
};

int list_all(const DatasetRegistry& datasets, const std::filesystem::path& to) {
  for (const Download& download : downloads(datasets)) std::cout << describe(download, to) << '\n';
  std::cout << "`settrain data fetch NAME` gets one of them.\n";
  return kSuccess;
}

void print_place(const Download& download, const std::filesystem::path& folder, const char* what) {
  std::cout << fmt::format("{} is {} '{}'; a config uses it by\n  {}\n", download.name, what, folder.string(),
                           config_line(download, folder));
}

int fetch_data(const DatasetRegistry& datasets, const FetchOptions& options) {
  const std::filesystem::path to = options.to.empty() ? default_data_folder() : std::filesystem::path(options.to);
  if (options.name.empty()) {
    if (!options.source.empty() || !options.md5.empty()) {
      throw ConfigError("--source and --md5 are of one data set: name it");
    }
    return list_all(datasets, to);
  }
  const Download download = with_source(find_download(datasets, options.name), options.source, options.md5);
  std::cout << describe(download, to) << std::flush;
  // With --to, a copy in another folder does not count.
  Download wanted = download;
  if (!options.to.empty()) wanted.usual_place.clear();
  if (const auto complete = find_complete(wanted, to)) {
    print_place(download, *complete, "already in");
    return kSuccess;
  }
  if (options.dry_run && !download.files.empty()) {
    std::cout << "Nothing was downloaded, because of --dry-run.\n";
    return kSuccess;
  }
  catch_interrupts();
  print_place(download, fetch(download, to), "now in");
  return kSuccess;
}

}  // namespace

void add_data_fetch_command(CLI::App& data, CommandLine& line) {
  CLI::App* command = data.add_subcommand(
      "fetch",
      "Downloads a data set with curl, checks it and unpacks it to where the configs look. Goes on with a "
      "download that was stopped. Without NAME: where each comes from, its size, checksum and licence");
  const auto options = std::make_shared<FetchOptions>();
  std::vector<std::string> names;
  for (const Download& download : downloads(line.registries.datasets)) names.push_back(download.name);
  command->add_option("name", options->name, fmt::format("{}", fmt::join(names, ", ")))->option_text("NAME");
  command->add_option("--to", options->to, "The folder of all data; without it $SETTRAIN_DATA, or data/");
  command->add_flag("--dry-run", options->dry_run, "Only tell what would be downloaded");
  command->add_option("--source", options->source,
                      "Another address of the file (https, http or file), such as a mirror's; of several files, of the "
                      "folder they are in");
  command->add_option("--md5", options->md5, "The MD5 to check against, in place of the one that is recorded");
  command->callback(
      [&line, options] { line.action = [&line, options] { return fetch_data(line.registries.datasets, *options); }; });
}

}  // namespace settrain
