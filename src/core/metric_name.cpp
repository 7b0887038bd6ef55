#include "src/core/metric_name.h"

namespace settrain {

std::string size_metric(const std::string& metric) {
  const size_t slash = metric.rfind('/');
  const size_t sets = metric.find("avg", slash);
  if (slash == std::string::npos || sets == std::string::npos || accuracy_metric(metric) != metric) return "";
  return metric.substr(0, slash + 1) + metric.substr(sets) + "_size";
}

std::string accuracy_metric(const std::string& metric) {
  for (const std::string suffix : {"_size", "_lambda"}) {
    if (metric.ends_with(suffix)) return metric.substr(0, metric.size() - suffix.size());
  }
  return metric;
}

}  // namespace settrain
