#include <fmt/format.h>

#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "apps/settrain/command_line.h"
#include "src/core/error.h"
#include "src/core/files.h"
#include "src/core/interrupt.h"
#include "src/core/text.h"
#include "src/report/report.h"
#include "src/run_folder/run_folder.h"
#include "src/studies/compare/compared_run.h"
#include "src/train/compute_policy.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;

struct ReportArguments {
  std::vector<std::string> runs;
  std::string out;
  bool no_examples = false;
};

fs::path report_file(const ReportArguments& arguments, const std::vector<fs::path>& runs) {
  if (!arguments.out.empty()) return arguments.out;
  return runs.size() == 1 ? RunFolder::open_existing(runs.front()).report() : fs::path("report.html");
}

// Throws where the file is no older report, which would be lost.
void refuse_other_files(const fs::path& file) {
  if (!fs::exists(file)) return;
  std::string begin(kReportMarker.size(), '\0');
  std::ifstream(file, std::ios::binary).read(begin.data(), std::ssize(begin));
  if (begin != kReportMarker) {
    throw Error(fmt::format("'{}' is there and no report of settrain; choose another place with --out", file.string()));
  }
}

int write_report(const CommandLine& line, const ReportArguments& arguments) {
  catch_interrupts();
  const at::Device device = find_device(line.device);
  const std::vector<fs::path> runs = find_runs(arguments.runs);
  const fs::path file = report_file(arguments, runs);
  refuse_other_files(file);
  AtomicFile output(file);  // throws where it cannot be written, before the evaluation
  ProgressBar bar;
  const nlohmann::ordered_json data =
      report_data(line.registries, device, runs, !arguments.no_examples, line.settings, bar);
  const std::string page = report_page(data.at("title").get<std::string>(), data);
  output.write(page);
  output.commit();
  std::cout << fmt::format("'{}': a report on {} {}, {}\n", file.string(), data.at("runs").size(),
                           data.at("runs").size() == 1 ? "run" : "runs", format_bytes(page.size()));
  return kSuccess;
}

}  // namespace

void add_report_command(CLI::App& app, CommandLine& line) {
  const auto [command, arguments] = add_subcommand<ReportArguments>(
      app, line, "report", write_report,
      "Writes one HTML file on a run or several: results, curves, sets, confusions, example images, configs");
  command
      ->add_option("runs", arguments->runs,
                   "Runs' folders, finished or not, and folders that directly hold some, such as a sweep's")
      ->required();
  command->add_option("--out", arguments->out,
                      "The file; without it report.html, of one run in its folder, of several in the current one. An "
                      "older report is replaced");
  command->add_flag("--no-examples", arguments->no_examples,
                    "Evaluates nothing: no accuracies by class, confusions and example images");
  add_set_option(*command, line,
                 "key.path=value over the runs' configs, such as data.root=FOLDER where images have moved");
  add_device_option(*command, line);
}

}  // namespace settrain
