#include "src/serve/batch_scorer.h"

#include <ATen/ATen.h>

#include <chrono>
#include <condition_variable>
#include <future>
#include <limits>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "models/model.h"
#include "src/serve/http/http_server.h"
#include "tests/support/catch2.h"

using namespace settrain;

namespace {

// Scores (pixel, 0) of images of one pixel. Waits in between, where it is held.
class Pixel : public Model {
 public:
  at::Tensor features(const at::Tensor& images) override {
    std::unique_lock lock(mutex_);
    batches_.push_back(images.size(0));
    changed_.notify_all();
    changed_.wait(lock, [this] { return !is_held_; });
    if (images.max().item<float>() == 99) throw std::runtime_error("no more memory");
    return images.flatten(1);
  }

  ModelOutput classify(const at::Tensor& features) override {
    ModelOutput output;
    output.scores = at::cat({features, at::zeros_like(features)}, 1);
    return output;
  }

  void hold(bool on) {
    const std::lock_guard lock(mutex_);
    is_held_ = on;
    changed_.notify_all();
  }
  void wait_for_batches(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return batches_.size() >= count; });
  }
  std::vector<int64_t> batches() {
    const std::lock_guard lock(mutex_);
    return batches_;
  }

 private:
  std::mutex mutex_{};
  std::condition_variable changed_{};
  bool is_held_ = false;
  std::vector<int64_t> batches_{};
};

at::Tensor image(float value) {
  return at::full({1, 1, 1, 1}, value);
}

struct Scored {
  std::shared_ptr<Pixel> pixel = std::make_shared<Pixel>();
  TrainedModel model{.file = "pixel.safetensors", .config = config::Config({}), .model = pixel};
  ServiceMetrics metrics{};
  BatchScorer scorer;

  explicit Scored(const BatchOptions& options) : scorer(model, image(0), options, metrics) {}

  // In a thread of its own; returns when the images wait.
  std::future<at::Tensor> ask(std::vector<float> values) {
    auto places = std::make_unique<BatchScorer::Places>(scorer, std::ssize(values));
    std::vector<at::Tensor> images;
    for (const float value : values) images.push_back(image(value));
    return std::async(std::launch::async, [places = std::move(places), images = std::move(images)]() mutable {
      const auto own = std::move(places);  // ends with the thread, not with the future
      return own->score(images);
    });
  }
};

std::string refusal(std::future<at::Tensor> scores) {
  try {
    scores.get();
  } catch (const HttpError& error) {
    return std::to_string(error.status()) + " " + error.what();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "answered";
}

using Batches = std::vector<int64_t>;

}  // namespace

TEST_CASE("the model is asked at the start, alone and with the largest batch") {
  Scored scored({.most_images = 7});
  CHECK(scored.pixel->batches() == Batches{1, 7});
  CHECK(scored.metrics.text().find("settrain_batch_images_count 0\n") != std::string::npos);
}

TEST_CASE("cuDNN does not search for algorithms anew with every size of a batch") {
  at::globalContext().setBenchmarkCuDNN(true);
  const Scored scored({.most_images = 7});
  CHECK_FALSE(at::globalContext().benchmarkCuDNN());
}

TEST_CASE("what comes while the model is busy makes the next batch, and each has its own scores") {
  Scored scored({.most_images = 4, .window_ms = 0});
  scored.pixel->hold(true);
  auto first = scored.ask({1});
  scored.pixel->wait_for_batches(3);
  std::vector<std::future<at::Tensor>> others;
  for (const std::vector<float>& values : {std::vector<float>{2, 3}, {4}, {5, 6, 7}})
    others.push_back(scored.ask(values));
  while (scored.metrics.text().find("settrain_waiting_images 6\n") == std::string::npos) std::this_thread::yield();
  scored.pixel->hold(false);
  CHECK(first.get()[0][0].item<float>() == 1);
  CHECK(at::equal(others[0].get(), at::tensor({2.F, 0.F, 3.F, 0.F}).view({2, 2})));
  CHECK(others[1].get()[0][0].item<float>() == 4);
  CHECK(at::equal(others[2].get().select(1, 0), at::tensor({5.F, 6.F, 7.F})));
  for (const int64_t images : scored.pixel->batches()) CHECK(images <= 4);
}

TEST_CASE("a batch waits for images that are on their way, and for no others") {
  Scored scored({.most_images = 4, .window_ms = 3'600'000});
  CHECK(scored.ask({1}).get()[0][0].item<float>() == 1);  // nobody else is there: at once
  BatchScorer::Places places(scored.scorer, 1);
  auto first = scored.ask({2});
  CHECK(places.score({image(3)})[0][0].item<float>() == 3);
  first.get();
  CHECK(scored.pixel->batches() == Batches{1, 4, 1, 2});
  {
    const BatchScorer::Places given_up(scored.scorer, 1);  // an image that cannot be decoded
    first = scored.ask({4});
  }
  CHECK(first.get()[0][0].item<float>() == 4);
}

TEST_CASE("a request with more images than a batch is scored in several") {
  Scored scored({.most_images = 2});
  CHECK(at::equal(scored.ask({1, 2, 3, 4, 5}).get().select(1, 0), at::tensor({1.F, 2.F, 3.F, 4.F, 5.F})));
  CHECK(scored.pixel->batches() == Batches{1, 2, 2, 2, 1});
}

TEST_CASE("no more images wait than there are places, decoded or not") {
  Scored scored({.most_waiting = 3});
  {
    const BatchScorer::Places taken(scored.scorer, 2);
    CHECK_NOTHROW(BatchScorer::Places(scored.scorer, 1));
    CHECK_THROWS_AS(BatchScorer::Places(scored.scorer, 2), HttpError);
  }
  CHECK_NOTHROW(BatchScorer::Places(scored.scorer, 3));
}

TEST_CASE("who does not reach the model in time is told so") {
  Scored scored({.window_ms = 0, .seconds = 0.05});
  scored.pixel->hold(true);
  auto first = scored.ask({1});
  scored.pixel->wait_for_batches(3);
  auto late = scored.ask({2});
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  scored.pixel->hold(false);
  CHECK(refusal(std::move(first)) == "answered");
  CHECK(refusal(std::move(late)).starts_with("503 it took more than 0.05 s"));
}

TEST_CASE("what goes wrong with one batch does not end the next") {
  Scored scored({.window_ms = 0});
  CHECK(refusal(scored.ask({99})) == "no more memory");
  CHECK(refusal(scored.ask({1})) == "answered");
}

TEST_CASE("scores that are not finite are the error of their own request alone") {
  Scored scored({.window_ms = 3'600'000});
  auto places = std::make_unique<BatchScorer::Places>(scored.scorer, 1);
  auto bad = scored.ask({std::numeric_limits<float>::quiet_NaN()});
  auto good = std::async(std::launch::async, [&] { return places->score({image(2)}); });
  CHECK(refusal(std::move(bad)) == "the model's scores are not finite");
  CHECK(good.get()[0][0].item<float>() == 2);
  CHECK(scored.pixel->batches().back() == 2);
}

TEST_CASE("what waits at the end is scored") {
  std::future<at::Tensor> last;
  {
    Scored scored({.window_ms = 0});
    scored.pixel->hold(true);
    auto first = scored.ask({1});
    scored.pixel->wait_for_batches(3);
    last = scored.ask({2});
    while (scored.metrics.text().find("settrain_waiting_images 1\n") == std::string::npos) std::this_thread::yield();
    scored.pixel->hold(false);
    first.get();
    last.wait();
  }
  CHECK(last.get()[0][0].item<float>() == 2);
}
