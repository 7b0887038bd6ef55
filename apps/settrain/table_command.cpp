#include <ATen/Parallel.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <iterator>

#include "apps/settrain/design_cost.h"
#include "apps/settrain/design_run.h"
#include "src/core/error.h"
#include "src/core/files.h"
#include "src/core/interrupt.h"
#include "src/core/log.h"
#include "src/measure/bench/smoothed_bench.h"
#include "src/papers/design/run_design.h"
#include "src/papers/table/filled_table.h"
#include "src/papers/table/table_formats.h"
#include "src/train/compute_policy.h"
#include "src/train/experiment_schema.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;

// The value that `let` of a cell's row or column gives `word`. Throws ConfigError where neither has it.
std::string let_value(const Table& table, size_t row, size_t column, const std::string& word) {
  const std::string text = table.substitute("{" + word + "}", row, column);
  if (!text.starts_with('{')) return text;
  throw ConfigError(fmt::format("'{}': row {}, column {}: neither has {} in `let`", table.file.string(),
                                table.rows.each[row].label, table.columns.each[column].label, word));
}

// let_value() as a number above 0.
double let_number(const Table& table, size_t row, size_t column, const std::string& word) {
  const std::string text = let_value(table, row, column, word);
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (*end == '\0' && end != text.c_str() && std::isfinite(value) && value > 0) return value;
  throw ConfigError(fmt::format("'{}': {}: expected a number above 0, got '{}'", table.file.string(), word, text));
}

// Measures every cell of a table of times or of stability. `let` of its rows and columns has the algorithm, classes,
// dtype and tau.
class Measurement {
 public:
  Measurement(const LossRegistry& registry, const Table& table, at::Device device, ProgressBar& bar)
      : registry_(registry), table_(table), device_(device), bar_(bar) {}

  // Throws ConfigError where `let` lacks a value, and Interrupted where a signal asks to stop.
  FilledTable run() {
    FilledTable filled{.table = &table_};
    filled.measured_on =
        device_.is_cuda() ? device_.str() : fmt::format("the CPU with {} threads", at::get_num_threads());
    // All cells are read before anything is measured.
    for (const TablePart& part : table_.parts) {
      for (const size_t row : part.rows) {
        for (size_t column = 0; column < table_.columns.each.size(); ++column) read_cell(row, column);
        total_ += table_.measure->runs * std::ssize(table_.columns.each);
      }
    }
    for (const TablePart& part : table_.parts) {
      FilledPart made{.part = &part, .columns = columns_of(table_, part)};
      for (const size_t row : part.rows) {
        std::vector<TableCell> cells;
        for (const size_t column : made.columns) cells.push_back(measure_cell(part, row, column));
        made.cells.push_back(std::move(cells));
      }
      filled.parts.push_back(std::move(made));
    }
    return filled;
  }

 private:
  // The facts that `let` of a row and a column give: without dtype and tau for times, without classes for stability.
  struct MeasuredCell {
    std::string algorithm;  // one of kSmoothedAlgorithms
    LossCase loss_case;
    at::ScalarType dtype = at::kFloat;
    double tau = 0;
  };

  bool is_stability() const { return table_.measure->is_stability(); }

  MeasuredCell read_cell(size_t row, size_t column) const {
    const auto fail = [&](const std::string& what) {
      throw ConfigError(fmt::format("'{}': row {}: {}", table_.file.string(), table_.rows.each[row].label, what));
    };
    MeasuredCell cell{.algorithm = let_value(table_, row, column, "algorithm"),
                      .loss_case = {.loss = "smoothed_topk_hinge"}};
    if (std::find(std::begin(kSmoothedAlgorithms), std::end(kSmoothedAlgorithms), cell.algorithm) ==
        std::end(kSmoothedAlgorithms)) {
      fail(fmt::format("there is no algorithm '{}'; there are {}", cell.algorithm,
                       fmt::join(kSmoothedAlgorithms, ", ")));
    }
    cell.loss_case.batch = table_.measure->batch;
    cell.loss_case.k = table_.measure->k;
    if (!is_stability()) {
      cell.loss_case.classes = static_cast<int64_t>(let_number(table_, row, column, "classes"));
      return cell;
    }
    const std::string dtype = let_value(table_, row, column, "dtype");
    if (dtype != "float32" && dtype != "float64") {
      fail(fmt::format("dtype: expected float32 or float64, got '{}'", dtype));
    }
    cell.dtype = dtype == "float32" ? at::kFloat : at::kDouble;
    cell.tau = let_number(table_, row, column, "tau");
    return cell;
  }

  TableCell measure_cell(const TablePart& part, size_t row, size_t column) {
    const MeasuredCell wanted = read_cell(row, column);
    TableCell cell;
    cell.metric = table_.measure->what;
    cell.printed = part.printed_at(row, column);  // shown only: times of another machine are not subtracted
    if (is_stability()) {
      const bool is_stable =
          is_smoothed_stable(registry_, wanted.algorithm, wanted.loss_case, wanted.tau, wanted.dtype, device_);
      cell.word = is_stable ? "stable" : "overflow";
      return cell;
    }
    const SmoothedSeconds& seconds = seconds_of(wanted);
    const bool is_forward = table_.measure->is_forward();
    if (is_forward || seconds.backward) {
      cell.values = {is_forward ? seconds.forward : *seconds.backward};
      cell.ours = mean_interval(cell.values);
    }
    return cell;
  }

  const SmoothedSeconds& seconds_of(const MeasuredCell& cell) {
    const auto place = std::pair(cell.algorithm, cell.loss_case.classes);
    if (const auto known = measured_.find(place); known != measured_.end()) return known->second;
    const auto count = [&] {
      const std::string stage = fmt::format("[table] {}, {} classes", cell.algorithm, cell.loss_case.classes);
      bar_.update({.stage = stage, .done = done_++, .total = total_, .after = 0, .figures = ""});
    };
    return measured_[place] =
               time_smoothed(registry_, cell.algorithm, cell.loss_case, table_.measure->runs, device_, count);
  }

  const LossRegistry& registry_;
  const Table& table_;
  at::Device device_;
  ProgressBar& bar_;
  int64_t done_ = 0, total_ = 0;  // runs
  std::map<std::pair<std::string, int64_t>, SmoothedSeconds> measured_;
};

constexpr const char* kTableFolder = "tables/";

fs::path tables_folder() {
  return config_folder() / "tables";
}

// Prints the table, and writes it to the folder in every format.
void write_table(const FilledTable& filled, const fs::path& folder) {
  std::error_code ignored;  // writing a file there throws
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
    const std::string parts = fmt::format("{}", fmt::join(numbers, ", "));
    if (table.measure) {
      rows.push_back({name, parts, table.title, "measured", "", "nothing", "yes"});
    } else {
      rows.push_back(list.row({name, parts, table.title}, table, table.wanted_cells()));
    }
  }
  return rows;
}

int measure_table(const CommandLine& line, const DesignArguments& arguments, const Table& table) {
  if (arguments.sweep.dry_run) {
    std::cout << fmt::format("{} is measured: {} cells, mean of {} runs each; it needs no data\n", table.name,
                             table.rows.each.size() * table.columns.each.size(), table.measure->runs);
    return kSuccess;
  }
  catch_interrupts();
  ProgressBar bar;
  const FilledTable filled = Measurement(line.registries.losses, table, find_device(line.device), bar).run();
  bar.hide();
  write_table(filled, folder_of(table, arguments, kTableFolder));
  return kSuccess;
}

int make_table(const CommandLine& line, const DesignArguments& arguments) {
  const Table table = read_table(find_table(tables_folder(), arguments.name), arguments.preset);
  if (table.measure) {
    if (arguments.collects() || arguments.sweep.slurm) {
      throw ConfigError(table.name + " is measured; there are no runs to collect or to submit");
    }
    return measure_table(line, arguments, table);
  }
  const fs::path folder = folder_of(table, arguments, kTableFolder);
  const auto show = [&](const auto& runs, const auto& failures) {
    FilledTable filled =
        collect_runs(table, experiment_schema(line.registries), runs, /*of_table_only=*/!arguments.collects());
    if (arguments.collects() && filled.found == 0) {
      throw RunError(fmt::format("none of the runs has results for a cell of {}:\n  {}", table.name,
                                 fmt::join(filled.remarks, "\n  ")));
    }
    filled.remarks.insert(filled.remarks.end(), failures.begin(), failures.end());
    write_table(filled, folder);
  };
  return make_design(line, arguments, table, table.wanted_cells(), folder, show);
}

}  // namespace

void add_table_command(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand(
      "table",
      "Makes a table of a paper, or one of our own: trains what it needs, or goes on, and writes Markdown, CSV, LaTeX and "
      "HTML with the printed numbers beside ours. `settrain table list` has all of them");
  add_design_options(*command, line, "table", "icml2022/4, thesis/5.1, own/label-noise; or a table's file",
                     kTableFolder, make_table);
  add_design_list(*command, line, "table", {"table", "parts", "of"}, list_tables);
}

}  // namespace settrain
