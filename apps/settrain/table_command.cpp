#include "apps/settrain/table_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>

#include "apps/settrain/config_path.h"
#include "apps/settrain/sweep_run.h"
#include "apps/settrain/table_cost.h"
#include "apps/settrain/table_measure.h"
#include "src/compare/compared_run.h"
#include "src/core/atomic_file.h"
#include "src/core/error.h"
#include "src/core/human.h"
#include "src/core/interrupt.h"
#include "src/core/log.h"
#include "src/engine/experiment.h"
#include "src/engine/experiment_schema.h"
#include "src/sweep/table_text.h"
#include "src/table/check_table.h"
#include "src/table/collect_runs.h"
#include "src/table/table_formats.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;

struct TableArguments {
  std::string name, preset = "paper";
  std::vector<std::string> runs;  // of --collect
  bool no_hours = false;
  SweepArguments sweep;
};

// Where the table and its runs are, unless --dir says otherwise.
fs::path folder_of(const Table& table, const TableArguments& arguments) {
  if (!arguments.sweep.folder.empty()) return arguments.sweep.folder;
  // Collected ones apart, so that the same table can still be trained.
  return fs::path("tables") / (table.file_name() + (arguments.runs.empty() ? "" : "-collected"));
}

fs::path tables_folder() {
  return config_folder() / "tables";
}

// Prints the table, and writes it to the folder in every format.
void write(const FilledTable& filled, const fs::path& folder) {
  std::error_code ignored;  // the file that cannot be written then says why
  fs::create_directories(folder, ignored);
  const std::string markdown = table_markdown(filled);
  write_file_atomically(folder / "table.md", markdown);
  write_file_atomically(folder / "table.csv", table_csv(filled));
  write_file_atomically(folder / "table.tex", table_latex(filled));
  write_file_atomically(folder / "table.html", table_html(filled));
  std::cout << markdown << std::flush;
  log::info(fmt::format("[table] {} and table.csv, table.tex, table.html beside it", (folder / "table.md").string()));
}

std::string hours(const TableCost& cost) {
  if (!cost.seconds) return "";
  const double hours = *cost.seconds / 3600;
  return hours < 10 ? fmt::format("{:.2f}", hours) : fmt::format("{:.0f}", hours);
}

int list_tables(const CommandLine& line, const TableArguments& arguments) {
  catch_interrupts();
  TableCosts costs(line, !arguments.no_hours);
  ProgressBar bar;
  std::vector<std::vector<std::string>> rows;
  for (const std::string& name : table_names(tables_folder())) {
    const Table table = read_table(tables_folder() / (name + ".yaml"), arguments.preset);
    const TableCost cost = costs.of(table, bar);
    std::vector<std::string> numbers;
    for (const TablePart& part : table.parts) {
      if (!part.number.empty()) numbers.push_back(part.number);
    }
    rows.push_back({name, fmt::format("{}", fmt::join(numbers, ", ")), table.title,
                    table.measure ? "measured" : std::to_string(cost.runs), hours(cost),
                    fmt::format("{}", fmt::join(cost.needs, "; ")), cost.missing.empty() ? "yes" : "no"});
  }
  bar.hide();
  std::cout << markdown_table({"table", "parts", "of", "runs", "hours", "needs", "there"}, rows);
  if (!arguments.no_hours) {
    log::info(fmt::format(
        "[table] preset {}; hours of all runs one after the other on {}, from steps measured now on made-up images; the "
        "loading of images is left out",
        arguments.preset, find_device(line.device).str()));
  }
  return kSuccess;
}

int collect(const CommandLine& line, const TableArguments& arguments, const Table& table) {
  check_table(table, experiment_schema(line.registries));
  const FilledTable filled =
      collect_runs(table, experiment_schema(line.registries), find_runs(arguments.runs), /*of_table_only=*/false);
  if (filled.found == 0) {
    throw RunError(fmt::format("none of the runs has results for a cell of {}:\n  {}", table.name,
                               fmt::join(filled.remarks, "\n  ")));
  }
  write(filled, folder_of(table, arguments));
  return kSuccess;
}

int measure(const CommandLine& line, const TableArguments& arguments, const Table& table) {
  if (arguments.sweep.dry_run) {
    std::cout << fmt::format("{} is measured: {} cells, mean of {} runs each; it needs no data\n", table.name,
                             table.rows.each.size() * table.columns.each.size(), table.measure->runs);
    return kSuccess;
  }
  catch_interrupts();
  ProgressBar bar;
  const FilledTable filled = measure_table(line.registries.losses, table, find_device(line.device), bar);
  bar.hide();
  write(filled, folder_of(table, arguments));
  return kSuccess;
}

// What is to come, with and without the data.
void print_table_plan(const CommandLine& line, const Table& table, const Sweep& sweep) {
  for (const SweepRow& row : rows_of(sweep)) {
    std::cout << fmt::format("{:<9} {}\n", name_of(row.status), row.point->name);
  }
  std::cout << std::flush;  // measuring takes a while
  ProgressBar bar;
  TableCosts costs(line, /*with_time=*/true);
  const TableCost cost = costs.of(table, bar);
  bar.hide();
  std::cout << fmt::format("needs: {}\n", fmt::join(cost.needs, "; "));
  for (const std::string& sentence : cost.missing) std::cout << fmt::format("missing: {}\n", sentence);
  if (cost.seconds) {
    std::cout << fmt::format(
        "all {} runs one after the other: {}, from steps measured on made-up images; the loading of images is left out\n",
        cost.runs, format_duration(*cost.seconds));
  }
}

int train(const CommandLine& line, const TableArguments& arguments, const Table& table) {
  check_table(table, experiment_schema(line.registries));
  const Sweep sweep = open_sweep(line, arguments.sweep, grid_of(table), table.file_name(), folder_of(table, arguments));
  if (arguments.sweep.dry_run) {
    print_table_plan(line, table, sweep);
    return kSuccess;
  }
  const std::vector<SweepRow> rows = rows_of(sweep);
  const bool is_done = std::all_of(rows.begin(), rows.end(), [&](const SweepRow& row) {
    return row.status == PointStatus::kFinished ||
           (row.status == PointStatus::kFailed && !arguments.sweep.retry_failed);
  });
  ProgressBar bar;
  const TableCost cost = TableCosts(line, /*with_time=*/false).of(table, bar);
  if (!is_done && !cost.missing.empty()) {
    throw DataError(fmt::format("{} cannot be made here:\n  {}", table.name, fmt::join(cost.missing, "\n  ")));
  }
  const auto fill = [&] {
    std::vector<fs::path> runs;
    std::vector<std::string> failures;
    for (const SweepRow& row : rows_of(sweep)) {
      if (row.status == PointStatus::kFinished) runs.push_back(sweep.folder.run_of(*row.point));
      if (row.status == PointStatus::kFailed)
        failures.push_back(fmt::format("{} failed: {}", row.point->name, row.failure));
    }
    FilledTable filled = collect_runs(table, experiment_schema(line.registries), runs, /*of_table_only=*/true);
    filled.remarks.insert(filled.remarks.end(), failures.begin(), failures.end());
    write(filled, sweep.folder.path());
  };
  try {
    const int64_t failed = carry_out(line, sweep, arguments.sweep);
    fill();
    return failed == 0 ? kSuccess : kFailed;
  } catch (const Interrupted&) {
    fill();
    throw;
  }
}

int table(const CommandLine& line, const TableArguments& arguments) {
  if (arguments.name == "list") return list_tables(line, arguments);
  const Table table = read_table(find_table(tables_folder(), arguments.name), arguments.preset);
  if (table.measure) {
    if (!arguments.runs.empty()) throw ConfigError(table.name + " is measured; there are no runs to collect");
    return measure(line, arguments, table);
  }
  return arguments.runs.empty() ? train(line, arguments, table) : collect(line, arguments, table);
}

}  // namespace

void add_table_command(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand(
      "table",
      "Makes a table of a paper, or one of our own: trains what it needs, or goes on, and writes Markdown, CSV, LaTeX and "
      "HTML with the printed numbers beside ours. `settrain table list` has all of them");
  const auto arguments = std::make_shared<TableArguments>();
  command->add_option("name", arguments->name, "icml2022/4, thesis/5.1, own/label-noise; a table's file; or list")
      ->required();
  command
      ->add_option(
          "--preset", arguments->preset,
          "paper: the exact protocol; small: the same at a size for one GPU and minutes; smoke: to see that all "
          "of it works")
      ->capture_default_str();
  add_sweep_options(
      *command, line, arguments->sweep,
      "The table's folder, with its runs; tables/NAME without it, and with --collect tables/NAME-collected");
  CLI::Option* collect = command->add_option(
      "--collect", arguments->runs,
      "Trains nothing: fills the table from these runs, or those that these folders directly hold, whatever their seeds");
  for (const char* other : {"--dry-run", "--retry-failed", "--fail-fast"})
    command->get_option(other)->excludes(collect);
  command->add_flag("--no-hours", arguments->no_hours, "With list: measures no steps");
  command->callback([&line, arguments] { line.action = [&line, arguments] { return table(line, *arguments); }; });
}

}  // namespace settrain
