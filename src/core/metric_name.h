// Metrics that belong together, by their names.
#pragma once

#include <string>

namespace settrain {

/// Of an average-K accuracy the metric that says how large its sets were: "test/avg5_size" for "test/macro_avg5"; an
/// empty text for all others.
std::string size_metric(const std::string& metric);

/// The accuracy that a size or a threshold belongs to, "test/avg5" for "test/avg5_size" and "test/avg5_lambda"; of all
/// others `metric` itself.
std::string accuracy_metric(const std::string& metric);

}  // namespace settrain
