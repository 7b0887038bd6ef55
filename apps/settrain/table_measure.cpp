#include "apps/settrain/table_measure.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <map>

#include "src/bench/smoothed_bench.h"
#include "src/core/error.h"

namespace settrain {
namespace {

// What `let` of a cell's row or column says of `word`; else `fallback`.
std::string said(const Table& table, size_t row, size_t column, const std::string& word, const std::string& fallback) {
  const std::string text = table.substitute("{" + word + "}", row, column);
  return text.starts_with('{') ? fallback : text;
}

class Measurement {
 public:
  Measurement(const LossRegistry& registry, const Table& table, at::Device device, ProgressBar& bar)
      : registry_(registry), table_(table), device_(device), bar_(bar) {}

  FilledTable run() {
    FilledTable filled{.table = &table_};
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
  LossCase case_at(size_t row, size_t column) const {
    LossCase what{.loss = "smoothed_topk_hinge"};
    what.classes = std::atoll(said(table_, row, column, "classes", "1000").c_str());
    what.batch = table_.measure->batch;
    what.k = table_.measure->k;
    return what;
  }

  TableCell cell(const TablePart& part, size_t row, size_t column) {
    TableCell cell;
    cell.metric = table_.measure->what;
    cell.printed = part.printed_at(row, column);
    if (cell.printed.value) cell.printed_value = printed_in_our_unit(*cell.printed.value, part.unit);
    const std::string algorithm = said(table_, row, column, "algorithm", "");
    if (std::find(std::begin(kSmoothedAlgorithms), std::end(kSmoothedAlgorithms), algorithm) ==
        std::end(kSmoothedAlgorithms)) {
      throw ConfigError(fmt::format("'{}': row {}: there is no algorithm '{}'", table_.file.string(),
                                    table_.rows.each[row].label, algorithm));
    }
    if (table_.measure->what == "smoothed_stability") {
      const double tau = std::strtod(said(table_, row, column, "tau", "1").c_str(), nullptr);
      const bool is_double = said(table_, row, column, "dtype", "float32") == "float64";
      cell.word = is_smoothed_stable(registry_, algorithm, case_at(row, column), tau,
                                     is_double ? at::kDouble : at::kFloat, device_)
                      ? "stable"
                      : "overflow";
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
