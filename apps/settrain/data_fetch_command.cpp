#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <string>

#include "apps/settrain/data_command.h"
#include "src/core/interrupt.h"
#include "src/data_tools/fetch.h"

namespace settrain {
namespace {

struct FetchOptions {
  std::string name, to, source, md5;
  bool dry_run = false;
};

int list_all(const std::filesystem::path& to) {
  for (const Download& download : downloads()) std::cout << describe(download, to) << '\n';
  std::cout << "`settrain data fetch NAME` gets one of them.\n";
  return kSuccess;
}

void print_place(const Download& download, const std::filesystem::path& folder, const char* what) {
  std::string config = download.config;
  if (const size_t at = config.find("{}"); at != std::string::npos) config.replace(at, 2, folder.string());
  std::cout << fmt::format("{} is {} '{}'; a config uses it by\n  {}\n", download.name, what, folder.string(), config);
}

int fetch_data(const FetchOptions& options) {
  const std::filesystem::path to = options.to.empty() ? default_data_folder() : std::filesystem::path(options.to);
  if (options.name.empty()) return list_all(to);
  const Download download = with_source(find_download(options.name), options.source, options.md5);
  std::cout << describe(download, to) << std::flush;
  // Who names a place wants it there, wherever else it may be.
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
  command->add_option("name", options->name, "cifar100, fashion_mnist, plantnet300k, imagenet, imagenet_lt")
      ->option_text("NAME");
  command->add_option("--to", options->to, "The folder of all data; without it $SETTRAIN_DATA, or data/");
  command->add_flag("--dry-run", options->dry_run, "Only tell what would be downloaded");
  command->add_option("--source", options->source,
                      "Another address of the file (https, http or file), such as a mirror's; of several files, of the "
                      "folder they are in");
  command->add_option("--md5", options->md5, "The MD5 to check against, in place of the one that is recorded");
  command->callback([&line, options] { line.action = [options] { return fetch_data(*options); }; });
}

}  // namespace settrain
