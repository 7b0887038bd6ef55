#include "src/serve/http/service_metrics.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "src/core/text.h"

namespace settrain {
namespace {

const std::vector<double> kSeconds{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10};
const std::vector<double> kBatches{1, 2, 4, 8, 16, 32, 64};
const std::vector<double> kSizes{0, 1, 2, 3, 5, 10, 20, 50, 100, 1000};

std::string head(const char* name, const char* type, const char* help) {
  const std::string escaped = replace_characters(help, {{'\\', "\\\\"}, {'\n', "\\n"}});
  return fmt::format("# HELP {0} {2}\n# TYPE {0} {1}\n", name, type, escaped);
}

// `name="value"`. One value that breaks the format's rules makes Prometheus refuse the whole page, and a rule's name
// holds a file's name, which may be any bytes.
std::string label_text(const char* name, const std::string& value) {
  std::string utf8;
  for (size_t at = 0; at < value.size();) {
    const size_t begin = at;
    utf8 += next_code_point(value, at) ? value.substr(begin, at - begin) : "\uFFFD";
    at = std::max(at, begin + 1);
  }
  const std::string escaped = replace_characters(utf8, {{'\\', "\\\\"}, {'"', "\\\""}, {'\n', "\\n"}});
  return fmt::format("{}=\"{}\"", name, escaped);
}

int64_t resident_bytes() {
  long long pages = 0;
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen("/proc/self/statm", "r"), std::fclose);
  if (!file || std::fscanf(file.get(), "%*s %lld", &pages) != 1) return 0;
  return pages * ::sysconf(_SC_PAGESIZE);
}

}  // namespace

ServiceMetrics::ServiceMetrics()
    : seconds_(kSeconds),
      batches_(kBatches),
      start_(std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count()) {}

void ServiceMetrics::Histogram::add(double value) {
  ++counts[static_cast<size_t>(std::lower_bound(bounds.begin(), bounds.end(), value) - bounds.begin())];
  sum += value;
}

void ServiceMetrics::add_answer(const std::string& path, int status, double seconds) {
  const std::lock_guard lock(mutex_);
  ++answers_[{path, status}];
  if (path == "/predict" && status == 200) seconds_.add(seconds);
}

void ServiceMetrics::add_batch(int64_t images) {
  const std::lock_guard lock(mutex_);
  batches_.add(static_cast<double>(images));
}

void ServiceMetrics::add_set(const std::string& rule, int64_t size) {
  const std::lock_guard lock(mutex_);
  sets_.try_emplace(rule, kSizes).first->second.add(static_cast<double>(size));
}

std::string ServiceMetrics::lines(const std::string& name, const std::string& label, const Histogram& histogram) {
  std::string text;
  int64_t count = 0;
  for (size_t i = 0; i < histogram.counts.size(); ++i) {
    count += histogram.counts[i];
    const std::string bound = i < histogram.bounds.size() ? fmt::format("{}", histogram.bounds[i]) : "+Inf";
    text += fmt::format("{}_bucket{{{}{}le=\"{}\"}} {}\n", name, label, label.empty() ? "" : ",", bound, count);
  }
  const std::string labels = label.empty() ? "" : fmt::format("{{{}}}", label);
  return text + fmt::format("{0}_sum{1} {2}\n{0}_count{1} {3}\n", name, labels, histogram.sum, count);
}

std::string ServiceMetrics::text() const {
  const std::lock_guard lock(mutex_);
  std::string text = head("settrain_requests_total", "counter", "Answers by path and HTTP status.");
  for (const auto& [key, count] : answers_) {
    text += fmt::format("settrain_requests_total{{{},{}}} {}\n", label_text("path", key.first),
                        label_text("status", std::to_string(key.second)), count);
  }
  text += head("settrain_predict_seconds", "histogram",
               "From a request's first byte to its answer, of those that were answered with sets.");
  text += lines("settrain_predict_seconds", "", seconds_);
  text += head("settrain_batch_images", "histogram", "Images that the model scored together.");
  text += lines("settrain_batch_images", "", batches_);
  text += head("settrain_set_size", "histogram", "Sizes of the sets, by rule.");
  for (const auto& [rule, sizes] : sets_) text += lines("settrain_set_size", label_text("rule", rule), sizes);
  const auto gauge = [&text](const char* name, const char* help, const std::string& value) {
    text += head(name, "gauge", help) + fmt::format("{} {}\n", name, value);
  };
  gauge("settrain_waiting_images", "Images that wait for the model.", std::to_string(waiting_));
  gauge("settrain_connections", "Open connections.", std::to_string(connections_));
  gauge("process_resident_memory_bytes", "Resident memory.", std::to_string(resident_bytes()));
  gauge("settrain_start_time_seconds", "When the server began to answer, in seconds since 1970.",
        fmt::format("{:.3f}", start_));
  return text;
}

}  // namespace settrain
