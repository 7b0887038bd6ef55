#include "apps/settrain/table_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <iostream>
#include <memory>

#include "apps/settrain/config_path.h"
#include "apps/settrain/design_list.h"
#include "apps/settrain/design_run.h"
#include "apps/settrain/table_measure.h"
#include "src/core/error.h"
#include "src/core/files.h"
#include "src/core/interrupt.h"
#include "src/core/log.h"
#include "src/papers/design/cells.h"
#include "src/papers/design/run_design.h"
#include "src/papers/table/filled_table.h"
#include "src/papers/table/table_formats.h"
#include "src/studies/compare/compared_run.h"
#include "src/train/experiment.h"
#include "src/train/experiment_schema.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTableFolder = "tables/";

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

DesignRows list_tables(DesignList& list) {
  DesignRows rows;
  for (const std::string& name : design_names(tables_folder())) {
    const Table table = read_table(tables_folder() / (name + ".yaml"), list.preset());
    std::vector<std::string> numbers;
    for (const TablePart& part : table.parts) {
      if (!part.number.empty()) numbers.push_back(part.number);
    }
    std::vector<std::string> row{name, fmt::format("{}", fmt::join(numbers, ", ")), table.title};
    const std::vector<std::string> cost = table.measure ? std::vector<std::string>{"measured", "", "nothing", "yes"}
                                                        : list.cost_cells(table, table.wanted_cells());
    row.insert(row.end(), cost.begin(), cost.end());
    rows.push_back(std::move(row));
  }
  return rows;
}

int collect(const CommandLine& line, const DesignArguments& arguments, const Table& table) {
  const config::Schema schema = experiment_schema(line.registries);
  check_cells(table, table.wanted_cells(), schema);
  const FilledTable filled = collect_runs(table, schema, find_runs(arguments.runs), /*of_table_only=*/false);
  if (filled.found == 0) {
    throw RunError(fmt::format("none of the runs has results for a cell of {}:\n  {}", table.name,
                               fmt::join(filled.remarks, "\n  ")));
  }
  write(filled, folder_of(table, arguments, kTableFolder));
  return kSuccess;
}

int measure(const CommandLine& line, const DesignArguments& arguments, const Table& table) {
  if (arguments.sweep.dry_run) {
    std::cout << fmt::format("{} is measured: {} cells, mean of {} runs each; it needs no data\n", table.name,
                             table.rows.each.size() * table.columns.each.size(), table.measure->runs);
    return kSuccess;
  }
  catch_interrupts();
  ProgressBar bar;
  const FilledTable filled = measure_table(line.registries.losses, table, find_device(line.device), bar);
  bar.hide();
  write(filled, folder_of(table, arguments, kTableFolder));
  return kSuccess;
}

int train(const CommandLine& line, const DesignArguments& arguments, const Table& table) {
  const fs::path folder = folder_of(table, arguments, kTableFolder);
  const config::Schema schema = experiment_schema(line.registries);
  check_cells(table, table.wanted_cells(), schema);
  return train_design(line, arguments, table, table.wanted_cells(), folder,
                      [&](const auto& runs, const auto& failures) {
                        FilledTable filled = collect_runs(table, schema, runs, /*of_table_only=*/true);
                        filled.remarks.insert(filled.remarks.end(), failures.begin(), failures.end());
                        write(filled, folder);
                      });
}

int table(const CommandLine& line, const DesignArguments& arguments) {
  const Table table = read_table(find_table(tables_folder(), arguments.name), arguments.preset);
  if (table.measure) {
    if (!arguments.runs.empty() || arguments.sweep.slurm) {
      throw ConfigError(table.name + " is measured; there are no runs to collect or to submit");
    }
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
  const auto arguments = std::make_shared<DesignArguments>();
  command->add_option("name", arguments->name, "icml2022/4, thesis/5.1, own/label-noise; or a table's file");
  add_design_options(*command, line, *arguments, "table", kTableFolder);
  add_design_list(*command, line, "table", {"table", "parts", "of"}, list_tables);
  command->callback([command, &line, arguments] {
    if (names_design(*command)) line.action = [&line, arguments] { return table(line, *arguments); };
  });
}

}  // namespace settrain
