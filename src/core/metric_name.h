// Facts about a metric by its name alone. The files of finished runs (results.json, metrics.jsonl) and the tables that
// are made of them have a number for each name and nothing else, and there the name must do. Where metrics are
// computed, a MetricValue says its facts itself: metrics/metric.h.
#pragma once

#include <string>

namespace settrain {

/// The metric that says how large the sets of an average-K accuracy or of a set rule's coverage were: "test/avg5_size"
/// for "test/macro_avg5" and "test/avg5_f1", "test/subset_avg5_size" for "test/subset_macro_avg5",
/// "test/sparse_top_size" for "test/sparse_top_f1", "test/size@top:5" for "test/macro_coverage@top:5"; an empty text
/// for all other metrics.
std::string size_metric(const std::string& metric);

/// The accuracy that a size or a threshold belongs to: "test/avg5" for "test/avg5_size" and "test/avg5_lambda",
/// "test/sparse_top_weight" for "test/sparse_top_size", "test/coverage@top:5" for "test/size@top:5"; for all others
/// `metric` itself.
std::string accuracy_metric(const std::string& metric);

/// The sets that a metric by all labels of an image judges: "val/avg5" for "val/avg5_macro_f1", "val/top5" for
/// "val/top5_recall", "val/sparse_top" for "val/sparse_top_weight"; for all others `metric` itself.
std::string judged_by_all_labels(const std::string& metric);

/// Whether the metric is a number of classes and no fraction: "test/avg5_size", "size@top:5".
bool is_size(const std::string& metric);

/// Whether set sizes of that name are of all samples ("avg5"), and not of one shot group ("few_avg5").
bool is_of_all_samples(const std::string& set_sizes);

/// Whether `value` of the metric of that name is better than `other`: larger, or smaller for the sizes, gaps and shares
/// of uncovered classes of a set rule. NaN is never better. For numbers from files; is_better() is for a MetricValue.
bool is_better_by_name(const std::string& metric, double value, double other);

/// The beginning of the names of metrics on a part of a split's images, "subset_top5".
inline constexpr const char* kSubsetPrefix = "subset_";

/// The split: "val" of "val/macro_top5"; empty where the name has none.
std::string split_of_metric(const std::string& metric);

/// The name without the split: "macro_top5" of "val/macro_top5". A rule's name may hold slashes itself.
std::string name_of_metric(const std::string& metric);

}  // namespace settrain
