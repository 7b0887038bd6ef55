#include "src/train/step_graph.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <memory>
#include <utility>

#include "src/core/log.h"

#ifdef SETTRAIN_HAS_CUDA
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#endif

namespace settrain {
namespace {

constexpr int64_t kStepsBefore = 3;

#ifdef SETTRAIN_HAS_CUDA
std::function<void()> capture_cuda_graph(const std::function<void()>& operations) {
  auto graph = std::make_shared<at::cuda::CUDAGraph>();
  // The graph keeps memory of its own, in which the free blocks of the steps before are of no use.
  c10::cuda::device_synchronize();
  c10::cuda::CUDACachingAllocator::emptyCache();
  // Of this thread alone: the loader's threads go on asking for pinned memory.
  graph->capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
  try {
    operations();
  } catch (...) {
    try {
      graph->capture_end();
    } catch (const c10::Error&) {  // says that the capture failed, which is known
    }
    throw;
  }
  graph->capture_end();
  return [graph] { graph->replay(); };
}
#endif

}  // namespace

Capture cuda_graph_capture([[maybe_unused]] at::Device device) {
#ifdef SETTRAIN_HAS_CUDA
  c10::cuda::device_synchronize();  // what was begun on the other stream
  c10::cuda::setCurrentCUDAStream(c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device.index()));
  return capture_cuda_graph;
#else
  return {};
#endif
}

StepGraph::StepGraph(Capture capture, Operations operations)
    : capture_(std::move(capture)), operations_(std::move(operations)) {}

std::unique_ptr<StepGraph::Captured> StepGraph::captured(const StepInputs& inputs, int64_t epoch) {
  auto captured = std::make_unique<Captured>(cloned(inputs), at::Tensor(), std::function<void()>(), epoch);
  try {
    captured->replay = capture_([this, to = captured.get()] { to->results = operations_(to->inputs); });
  } catch (const c10::Error& error) {
    log::info(fmt::format("[train] steps are not captured as a CUDA graph: {}", error.what_without_backtrace()));
    capture_ = {};
    return nullptr;
  }
  return captured;
}

at::Tensor StepGraph::operator()(const StepInputs& inputs, int64_t epoch) {
  if (!capture_ || steps_before_++ < kStepsBefore) return operations_(inputs);
  if (!captured_ || captured_->epoch != epoch) {
    captured_.reset();  // before the next one takes memory
    captured_ = captured(inputs, epoch);
  }
  if (!captured_ || !alike(captured_->inputs, inputs)) return operations_(inputs);
  copy_into(captured_->inputs, inputs);
  captured_->replay();
  return captured_->results;
}

}  // namespace settrain
