#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "apps/settrain/command_line.h"
#include "src/core/error.h"
#include "src/core/log.h"
#include "src/measure/check/checks.h"
#include "src/train/compute_policy.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;

using Files = std::vector<fs::path>;

// Whether a file is checked on its own: lists of parameters and of initial weights go with the NAME.json beside them.
bool is_golden(const fs::path& file) {
  const std::string name = file.filename().string();
  if (!name.ends_with(".params.txt")) return name.ends_with(".json") && !name.ends_with(".init.json");
  return !fs::exists(file.parent_path() / (file.stem().stem().string() + ".json"));
}

// The golden files of one kind that come with the program.
Files golden_files(const fs::path& place) {
  const fs::path path = golden_folder() / place;
  if (fs::is_regular_file(path)) return {path};
  Files files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(path, error)) {
    if (is_golden(entry.path())) files.push_back(entry.path());
  }
  if (files.empty()) throw Error("there are no golden files in " + path.string() + "; name some on the command line");
  std::sort(files.begin(), files.end());
  return files;
}

// Prints the rows, and returns how many failed.
int64_t print_rows(const std::vector<CheckRow>& rows) {
  size_t name_width = 0, what_width = 0;
  for (const CheckRow& row : rows) {
    name_width = std::max(name_width, row.name.size());
    what_width = std::max(what_width, row.what.size());
  }
  int64_t failed = 0;
  for (const CheckRow& row : rows) {
    failed += row.passed ? 0 : 1;
    std::cout << fmt::format("{:<{}}  {:<{}}  error {:<9.3g} allowed {:<8.1g} {}{}\n", row.name, name_width, row.what,
                             what_width, row.max_error, row.tolerance, row.passed ? "ok" : "FAILED",
                             row.note.empty() ? "" : "  " + row.note);
  }
  std::cout << std::flush;
  return failed;
}

// Checks the files one by one. A file that cannot be read counts as failed.
int check_files(const Files& files, const std::function<std::vector<CheckRow>(const Files&)>& check) {
  int64_t rows = 0, failed = 0, unreadable = 0;
  for (const fs::path& file : files) {
    try {
      const std::vector<CheckRow> of_file = check({file});
      rows += std::ssize(of_file);
      failed += print_rows(of_file);
    } catch (const DataError& problem) {
      log::error(problem.what());
      ++unreadable;
    }
  }
  if (rows == 0 && unreadable == 0) throw Error("the golden files hold no cases");
  std::cout << fmt::format("{} of {} rows passed\n", rows - failed, rows);
  return failed + unreadable == 0 ? kSuccess : kFailed;
}

}  // namespace

void add_check_command(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand("check", "Compares this build with recorded golden values");
  command->require_subcommand(1);
  const auto kind = [&](const char* name, const fs::path& place, auto check) {
    const auto run = [place, check](const CommandLine& used, const Files& files) {
      const at::Device device = find_device(used.device);
      return check_files(files.empty() ? golden_files(place) : files,
                         [&](const Files& some) { return check(device, some); });
    };
    const auto [sub, files] = add_subcommand<Files>(
        *command, line, name, run, std::string("Checks the ") + name + "; a row a case, exit code 1 on a mismatch");
    sub->add_option("files", *files, "Golden files; without them those that come with settrain");
    add_device_option(*sub, line);
  };
  kind("losses", "losses", [&line](at::Device d, const Files& files) {
    warn_without_loss_kernels(d);
    return check_losses(line.registries.losses, d, files);
  });
  kind("metrics", "metrics.json", [](at::Device d, const Files& files) { return check_metrics(d, files); });
  kind("models", "models",
       [&line](at::Device d, const Files& files) { return check_models(line.registries.models, d, files); });
  kind("weights", "weights/checkpoints.json", [](at::Device, const Files& files) { return check_weights(files); });
}

}  // namespace settrain
