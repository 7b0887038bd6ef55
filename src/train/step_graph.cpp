#include "src/train/step_graph.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <exception>
#include <string>
#include <utility>

#include "src/core/error.h"
#include "src/core/log.h"
#include "src/core/text.h"
#include "src/cuda/cuda_library.h"

namespace settrain {
namespace {

constexpr int64_t kStepsBefore = 3;

bool is_alike(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() && a.strides() == b.strides();
}

std::function<void()> capture_cuda_graph(const std::function<void()>& operations) {
  const GraphCapture capture = cuda_calls().begin_capture();
  close_after(operations, capture.end, capture.clean_up);
  return capture.replay;
}

}  // namespace

void close_after(const std::function<void()>& operations, const std::function<void()>& close,
                 const std::vector<std::function<void()>>& clean_up) {
  std::exception_ptr failure;
  try {
    operations();
  } catch (...) {
    failure = std::current_exception();
  }
  try {
    close();
  } catch (...) {
    if (!failure) failure = std::current_exception();
    for (const std::function<void()>& call : clean_up) {
      try {
        call();
      } catch (const std::exception&) {  // it follows from the first error
      }
    }
  }
  if (failure) std::rethrow_exception(failure);
}

Capture cuda_graph_capture(at::Device device) {
  if (!has_gpu()) return {};
  cuda_calls().take_stream(device);
  return capture_cuda_graph;
}

bool are_alike(const StepInputs& a, const StepInputs& b) {
  return std::ranges::equal(a.parts, b.parts, [](const MicroBatch& x, const MicroBatch& y) {
    return !x.loss_input.label_sets.defined() && !y.loss_input.label_sets.defined() && is_alike(x.images, y.images) &&
           is_alike(x.loss_input.labels, y.loss_input.labels);
  });
}

StepInputs cloned(const StepInputs& inputs) {
  StepInputs clones = inputs;
  clones.numbers = inputs.numbers.clone();
  for (MicroBatch& part : clones.parts) {
    part.images = part.images.clone();
    part.loss_input.labels = part.loss_input.labels.clone();
  }
  return clones;
}

void copy_into(StepInputs& to, const StepInputs& from) {
  StepInputs copies = from;
  copies.numbers = to.numbers.copy_(from.numbers);
  for (size_t i = 0; i < from.parts.size(); ++i) {
    copies.parts[i].images = to.parts[i].images.copy_(from.parts[i].images);
    copies.parts[i].loss_input.labels = to.parts[i].loss_input.labels.copy_(from.parts[i].loss_input.labels);
  }
  to = std::move(copies);
}

StepGraph::StepGraph(Capture capture, Operations operations)
    : capture_(std::move(capture)), operations_(std::move(operations)) {}

std::unique_ptr<StepGraph::Captured> StepGraph::captured(const StepInputs& inputs) {
  std::string problem;
  try {
    auto captured = std::make_unique<Captured>(cloned(inputs), at::Tensor(), std::function<void()>());
    captured->replay = capture_([this, to = captured.get()] { to->results = operations_(to->inputs); });
    return captured;
  } catch (const c10::Error& error) {
    problem = error.what_without_backtrace();
  } catch (const Error& error) {  // of a kernel that was the first to notice
    problem = error.what();
  }
  log::info("[train] steps are not captured as a CUDA graph: " + first_line(problem));
  capture_ = {};
  return nullptr;
}

at::Tensor StepGraph::operator()(const StepInputs& inputs, int64_t epoch) {
  if (!capture_) return operations_(inputs);
  if (epoch != epoch_) {
    drop();
    epoch_ = epoch;
  }
  const bool is_ready = ++steps_before_ > kStepsBefore && last_ && are_alike(*last_, inputs);
  if (!captured_ && is_ready) captured_ = captured(inputs);
  if (!captured_ || !are_alike(captured_->inputs, inputs)) {
    last_ = inputs;
    return operations_(inputs);
  }
  copy_into(captured_->inputs, inputs);
  captured_->replay();
  return captured_->results;
}

void StepGraph::drop() {
  captured_.reset();
  last_.reset();
}

}  // namespace settrain
