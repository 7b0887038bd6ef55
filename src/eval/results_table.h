// Results as text for people.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "metrics/metric.h"

namespace settrain {

/// One column of the table: a split ("test"), or the best possible values on it ("test Bayes").
struct ResultsColumn {
  std::string title;
  std::vector<MetricValue> values;
};

/// A row a metric, in the order in which the columns name them; accuracies in percent, and beside an average-K accuracy
/// and the coverage of a set rule the realised mean size of the sets. Thresholds are left out, and so are the shot
/// groups where all classes are in one of them, which then says what the macro average says. "-" where a column has no
/// value. Every line ends in a newline.
std::string format_results(std::span<const ResultsColumn> columns);

/// Bars, a line a set size; sizes share a line where there would be more than 12 of them. Every line ends in a newline.
std::string format_set_sizes(const SetSizeHistogram& histogram);

}  // namespace settrain
