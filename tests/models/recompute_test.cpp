#include <ATen/ATen.h>
#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "models/entries.h"
#include "models/layers.h"
#include "models/model.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

// Counts the bytes of tensors that are alive, and the most there were. A block begins with its size.
class CountingAllocator : public c10::Allocator {
 public:
  CountingAllocator() : before_(c10::GetCPUAllocator()) {
    alive = most = 0;
    c10::SetCPUAllocator(this, kPriority);
  }
  ~CountingAllocator() override { c10::SetCPUAllocator(before_, kPriority); }

  at::DataPtr allocate(size_t bytes) override {
    alive += bytes;
    most = std::max(most, alive);
    auto* block = static_cast<char*>(std::aligned_alloc(kHead, (bytes / kHead + 2) * kHead));
    std::memcpy(block, &bytes, sizeof(bytes));
    return {block + kHead, block + kHead, &release, at::kCPU};
  }
  at::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, size_t bytes) const override { default_copy_data(to, from, bytes); }

  inline static size_t alive = 0, most = 0;

 private:
  static constexpr uint8_t kPriority = 10;
  static constexpr size_t kHead = 64;

  static void release(void* data) {
    char* block = static_cast<char*>(data) - kHead;
    size_t bytes = 0;
    std::memcpy(&bytes, block, sizeof(bytes));
    alive -= bytes;
    std::free(block);
  }

  c10::Allocator* before_;
};

struct Bytes {
  size_t kept, most;  // after the forward pass; during the backward pass
};

Bytes bytes_of_a_step(bool recompute) {
  const auto model = make_small_densenet({40, 8}, true, {}, {10, 3, 32, 32});
  if (recompute) model->recompute_activations();
  const at::Tensor images = at::randn({8, 3, 32, 32});
  const CountingAllocator allocator;
  at::Tensor sum = model->forward(images).scores.sum();
  const size_t kept = allocator.alive;
  allocator.most = 0;
  sum.backward();
  const size_t most = allocator.most;
  sum.reset();
  for (at::Tensor& parameter : model->parameters()) parameter.mutable_grad().reset();
  return {kept, most};
}

// The gradients of a stage whose first layer takes the images.
std::vector<at::Tensor> gradients_with_stem(bool recompute) {
  at::manual_seed(3);
  Stage stage;
  stage.add("stem", std::make_shared<Convolution>(3, 4, 3));
  stage.add("norm", std::make_shared<BatchNorm>(4));
  stage.add("convolution", std::make_shared<Convolution>(4, 2, 3));
  if (recompute) stage.recompute_activations();
  stage.forward(at::randn({2, 3, 8, 8})).pow(2).sum().backward();
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& parameter : stage.parameters()) gradients.push_back(parameter.grad());
  return gradients;
}

TEST_CASE("a stem in a recomputed stage, whose images have no gradient, learns as without recomputing") {
  const std::vector<at::Tensor> plain = gradients_with_stem(false), recomputed = gradients_with_stem(true);
  REQUIRE(plain.size() == 4);
  for (size_t i = 0; i < plain.size(); ++i) {
    REQUIRE(recomputed[i].defined());
    CHECK(at::equal(plain[i], recomputed[i]));
  }
}

TEST_CASE("activations that are computed again are not kept") {
  const Bytes plain = bytes_of_a_step(false), recomputed = bytes_of_a_step(true);
  CAPTURE(plain.kept, plain.most, recomputed.kept, recomputed.most);
  CHECK(recomputed.kept < 0.5 * static_cast<double>(plain.kept));
  CHECK(recomputed.most < 0.7 * static_cast<double>(plain.most));
}

}  // namespace
}  // namespace settrain
