#include "src/serve/http/service_metrics.h"

#include <string>

#include "tests/support/catch2.h"

using namespace settrain;
using Catch::Contains;

TEST_CASE("answers are counted by path and status, and those with sets timed") {
  ServiceMetrics metrics;
  metrics.add_answer("/predict", 200, 0.02);
  metrics.add_answer("/predict", 200, 100);
  metrics.add_answer("/predict", 503, 0.001);
  metrics.add_answer("/", 200, 0.001);
  const std::string text = metrics.text();
  CHECK_THAT(text, Contains("settrain_requests_total{path=\"/predict\",status=\"200\"} 2\n"));
  CHECK_THAT(text, Contains("settrain_requests_total{path=\"/predict\",status=\"503\"} 1\n"));
  CHECK_THAT(text, Contains("settrain_requests_total{path=\"/\",status=\"200\"} 1\n"));
  CHECK_THAT(text, Contains("settrain_predict_seconds_bucket{le=\"0.01\"} 0\n"));
  CHECK_THAT(text, Contains("settrain_predict_seconds_bucket{le=\"0.025\"} 1\n"));
  CHECK_THAT(text, Contains("settrain_predict_seconds_bucket{le=\"10\"} 1\n"));
  CHECK_THAT(text, Contains("settrain_predict_seconds_bucket{le=\"+Inf\"} 2\n"));
  CHECK_THAT(text, Contains("settrain_predict_seconds_sum 100.02\nsettrain_predict_seconds_count 2\n"));
}

TEST_CASE("sizes of sets are counted by rule; a bound is in its bucket") {
  ServiceMetrics metrics;
  for (const int64_t size : {0, 2, 3, 2000}) metrics.add_set("conformal:lac:0.1", size);
  metrics.add_set("top:5", 5);
  const std::string text = metrics.text();
  CHECK_THAT(text, Contains("settrain_set_size_bucket{rule=\"conformal:lac:0.1\",le=\"0\"} 1\n"));
  CHECK_THAT(text, Contains("settrain_set_size_bucket{rule=\"conformal:lac:0.1\",le=\"2\"} 2\n"));
  CHECK_THAT(text, Contains("settrain_set_size_bucket{rule=\"conformal:lac:0.1\",le=\"1000\"} 3\n"));
  CHECK_THAT(text, Contains("settrain_set_size_bucket{rule=\"conformal:lac:0.1\",le=\"+Inf\"} 4\n"));
  CHECK_THAT(text, Contains("settrain_set_size_sum{rule=\"conformal:lac:0.1\"} 2005\n"));
  CHECK_THAT(text, Contains("settrain_set_size_count{rule=\"top:5\"} 1\n"));
}

TEST_CASE("values of labels are escaped, and valid UTF-8") {
  ServiceMetrics metrics;
  metrics.add_set("wpas(weights=my \"best\" w.csv)", 1);
  metrics.add_set("a\\b\\", 1);
  metrics.add_set("one\nsettrain_connections 7", 1);
  metrics.add_set("\xC3\xA9 \xE9 \xE2\x82", 1);  // é in UTF-8, é in Latin-1, and the beginning of a euro sign
  metrics.add_answer("/\"\n", 200, 1);
  const std::string text = metrics.text();
  CHECK_THAT(text, Contains("settrain_set_size_count{rule=\"wpas(weights=my \\\"best\\\" w.csv)\"} 1\n"));
  CHECK_THAT(text, Contains("settrain_set_size_bucket{rule=\"wpas(weights=my \\\"best\\\" w.csv)\",le=\"1\"} 1\n"));
  CHECK_THAT(text, Contains("settrain_set_size_sum{rule=\"a\\\\b\\\\\"} 1\n"));
  CHECK_THAT(text, Contains("settrain_set_size_sum{rule=\"one\\nsettrain_connections 7\"} 1\n"));
  CHECK_THAT(text, Contains("settrain_set_size_sum{rule=\"\xC3\xA9 \uFFFD \uFFFD\uFFFD\"} 1\n"));
  CHECK_THAT(text, Contains("settrain_requests_total{path=\"/\\\"\\n\",status=\"200\"} 1\n"));
}

TEST_CASE("every metric has its help and type once, and gauges their values") {
  ServiceMetrics metrics;
  metrics.add_batch(3);
  metrics.set_waiting_images(7);
  metrics.add_connections(2);
  metrics.add_connections(-1);
  const std::string text = metrics.text();
  for (const char* name : {"settrain_requests_total", "settrain_predict_seconds", "settrain_batch_images",
                           "settrain_set_size", "settrain_waiting_images", "settrain_connections",
                           "process_resident_memory_bytes", "settrain_start_time_seconds"}) {
    const std::string help = std::string("# HELP ") + name + ' ', type = std::string("# TYPE ") + name + ' ';
    CHECK(text.find(help) != std::string::npos);
    CHECK(text.find(help) == text.rfind(help));
    CHECK(text.find(type) == text.rfind(type));
  }
  CHECK_THAT(text, Contains("settrain_batch_images_bucket{le=\"2\"} 0\n"));
  CHECK_THAT(text, Contains("settrain_batch_images_bucket{le=\"4\"} 1\n"));
  CHECK_THAT(text, Contains("settrain_waiting_images 7\n"));
  CHECK_THAT(text, Contains("settrain_connections 1\n"));
  CHECK_THAT(text, !Contains("process_resident_memory_bytes 0\n"));
}
