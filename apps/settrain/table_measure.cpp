#include "apps/settrain/table_measure.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <map>

#include "src/core/error.h"
#include "src/measure/bench/smoothed_bench.h"

namespace settrain {
namespace {

// What `let` of a cell's row or column says of `word`. Throws ConfigError where neither has it.
std::string said(const Table& table, size_t row, size_t column, const std::string& word) {
  const std::string text = table.substitute("{" + word + "}", row, column);
  if (!text.starts_with('{')) return text;
  throw ConfigError(fmt::format("'{}': row {}, column {}: neither has {} in `let`", table.file.string(),
                                table.rows.each[row].label, table.columns.each[column].label, word));
}

// The same as a number above 0.
double said_number(const Table& table, size_t row, size_t column, const std::string& word) {
  const std::string text = said(table, row, column, word);
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (*end == '\0' && end != text.c_str() && std::isfinite(value) && value > 0) return value;
  throw ConfigError(fmt::format("'{}': {}: expected a number above 0, got '{}'", table.file.string(), word, text));
}

class Measurement {
 public:
  Measurement(const LossRegistry& registry, const Table& table, at::Device device, ProgressBar& bar)
      : registry_(registry), table_(table), device_(device), bar_(bar) {}

  FilledTable run() {
    FilledTable filled{.table = &table_};
    check();
    filled.measured_on =
        device_.is_cuda() ? device_.str() : fmt::format("the CPU with {} threads", at::get_num_threads());
    for (const TablePart& part : table_.parts) total_ += std::ssize(part.rows) * std::ssize(table_.columns.each);
    total_ *= table_.measure->runs;
    for (const TablePart& part : table_.parts) {
      FilledPart made{.part = &part, .columns = columns_of(table_, part)};
      for (const size_t row : part.rows) {
        std::vector<TableCell> cells;
        for (const size_t column : made.columns) cells.push_back(cell(part, row, column));
        made.cells.push_back(std::move(cells));
      }
      filled.parts.push_back(std::move(made));
    }
    return filled;
  }

 private:
  bool is_stability() const { return table_.measure->what == "smoothed_stability"; }

  // One of kSmoothedAlgorithms.
  std::string algorithm_at(size_t row, size_t column) const {
    const std::string algorithm = said(table_, row, column, "algorithm");
    if (std::find(std::begin(kSmoothedAlgorithms), std::end(kSmoothedAlgorithms), algorithm) !=
        std::end(kSmoothedAlgorithms)) {
      return algorithm;
    }
    throw ConfigError(fmt::format("'{}': row {}: there is no algorithm '{}'; there are {}", table_.file.string(),
                                  table_.rows.each[row].label, algorithm, fmt::join(kSmoothedAlgorithms, ", ")));
  }

  at::ScalarType dtype_at(size_t row, size_t column) const {
    const std::string dtype = said(table_, row, column, "dtype");
    if (dtype == "float32") return at::kFloat;
    if (dtype == "float64") return at::kDouble;
    throw ConfigError(fmt::format("'{}': row {}: dtype: expected float32 or float64, got '{}'", table_.file.string(),
                                  table_.rows.each[row].label, dtype));
  }

  // Before anything is measured.
  void check() const {
    for (const TablePart& part : table_.parts) {
      for (const size_t row : part.rows) {
        for (size_t column = 0; column < table_.columns.each.size(); ++column) {
          algorithm_at(row, column);
          case_at(row, column);
          if (!is_stability()) continue;
          dtype_at(row, column);
          said_number(table_, row, column, "tau");
        }
      }
    }
  }

  LossCase case_at(size_t row, size_t column) const {
    LossCase what{.loss = "smoothed_topk_hinge"};
    // Of stability the number is not said.
    if (!is_stability()) what.classes = static_cast<int64_t>(said_number(table_, row, column, "classes"));
    what.batch = table_.measure->batch;
    what.k = table_.measure->k;
    return what;
  }

  TableCell cell(const TablePart& part, size_t row, size_t column) {
    TableCell cell;
    cell.metric = table_.measure->what;
    // Times of another machine are shown, and not subtracted.
    cell.printed = part.printed_at(row, column);
    const std::string algorithm = algorithm_at(row, column);
    if (is_stability()) {
      const bool is_stable =
          is_smoothed_stable(registry_, algorithm, case_at(row, column), said_number(table_, row, column, "tau"),
                             dtype_at(row, column), device_);
      cell.word = is_stable ? "stable" : "overflow";
      return cell;
    }
    const SmoothedSeconds& seconds = seconds_of(algorithm, row, column);
    const bool is_forward = table_.measure->what == "smoothed_forward";
    if (is_forward || seconds.backward) {
      cell.values = {is_forward ? seconds.forward : *seconds.backward};
      cell.ours = mean_interval(cell.values);
    }
    return cell;
  }

  const SmoothedSeconds& seconds_of(const std::string& algorithm, size_t row, size_t column) {
    const LossCase what = case_at(row, column);
    const auto place = std::pair(algorithm, what.classes);
    const auto known = measured_.find(place);
    if (known != measured_.end()) return known->second;
    const auto count = [&] {
      bar_.update({.stage = fmt::format("[table] {}, {} classes", algorithm, what.classes),
                   .done = done_++,
                   .total = total_,
                   .after = 0,
                   .figures = ""});
    };
    return measured_[place] = time_smoothed(registry_, algorithm, what, table_.measure->runs, device_, count);
  }

  const LossRegistry& registry_;
  const Table& table_;
  at::Device device_;
  ProgressBar& bar_;
  int64_t done_ = 0, total_ = 0;  // runs
  std::map<std::pair<std::string, int64_t>, SmoothedSeconds> measured_;
};

}  // namespace

FilledTable measure_table(const LossRegistry& registry, const Table& table, c10::Device device, ProgressBar& bar) {
  return Measurement(registry, table, device, bar).run();
}

}  // namespace settrain
