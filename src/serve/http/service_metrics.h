// Counters and histograms of the server, in Prometheus' text format.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace settrain {

/// Thread-safe.
class ServiceMetrics {
 public:
  ServiceMetrics();

  /// An answer to a request for `path`, `seconds` after its first byte.
  void add_answer(const std::string& path, int status, double seconds);
  void add_batch(int64_t images);
  void add_set(const std::string& rule, int64_t size);
  void set_waiting_images(int64_t images) { waiting_ = images; }
  void add_connections(int64_t count) { connections_ += count; }

  /// GET /metrics: version 0.0.4 of the format.
  std::string text() const;

 private:
  struct Histogram {
    std::vector<double> bounds{};   // upper ones, ascending; the last bucket has none
    std::vector<int64_t> counts{};  // [bounds + 1]
    double sum = 0;

    explicit Histogram(std::vector<double> upper) : bounds(std::move(upper)), counts(bounds.size() + 1) {}
    void add(double value);
  };
  // `label`: name="value", or empty.
  static std::string lines(const std::string& name, const std::string& label, const Histogram& histogram);

  mutable std::mutex mutex_{};
  std::map<std::pair<std::string, int>, int64_t> answers_{};  // by path and status
  Histogram seconds_, batches_;
  std::map<std::string, Histogram> sets_{};  // by rule
  std::atomic<int64_t> waiting_{0}, connections_{0};
  double start_;  // seconds since 1970
};

}  // namespace settrain
