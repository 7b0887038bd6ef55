#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <optional>
#include <set>

#include "apps/settrain/data_command.h"
#include "apps/settrain/data_options.h"
#include "src/core/error.h"
#include "src/core/files.h"
#include "src/core/interrupt.h"
#include "src/data_tools/verify.h"

namespace settrain {
namespace {

struct VerifyOptions {
  std::vector<std::string> splits;  // empty: all
  std::string list;
  int64_t workers = 0;
};

int verify(const CommandLine& line, const VerifyOptions& options) {
  if (std::set(options.splits.begin(), options.splits.end()).size() < options.splits.size()) {
    throw ConfigError("--splits: a split comes twice");
  }
  LoadedData data = load_data(line);
  data.dataset.train.labels = data.clean_labels;  // what the data say of a bad image, not the label noise
  std::optional<AtomicFile> list;
  if (!options.list.empty()) list.emplace(options.list);  // it may refuse: now, and not after hours of reading
  catch_interrupts();
  const std::vector<std::string> splits = options.splits.empty() ? split_names(data.dataset) : options.splits;
  const VerifyReport report = verify_images(data.dataset, splits, options.workers);
  std::cout << verify_text(report);
  if (list && report.complete()) {
    list->write(verify_list(report));
    list->commit();
  }
  if (!report.complete()) {
    std::cout.flush();
    throw_if_interrupted();
  }
  return report.bad.empty() ? kSuccess : kFailed;
}

}  // namespace

void add_data_verify_command(CLI::App& data, CommandLine& line) {
  CLI::App* command = data.add_subcommand(
      "verify", "Reads every image of a config's data and lists those that cannot be read, with exit code 1");
  const auto options = std::make_shared<VerifyOptions>();
  add_data_config(*command, line);
  add_workers(*command, options->workers);
  command->add_option("--splits", options->splits, "Of train, val, test, calibration; without it all")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember({"train", "val", "test", "calibration"}));
  command
      ->add_option("--list", options->list, "A file to write the bad images' paths to, one a line, once all are read")
      ->check([](const std::string& file) { return std::string(file.empty() ? "is empty: name a file" : ""); });
  command->callback([&line, options] { line.action = [&line, options] { return verify(line, *options); }; });
}

}  // namespace settrain
