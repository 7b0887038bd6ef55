// How much memory a piece of work takes.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>

namespace settrain {

/// The most bytes of tensors that `work` held at a time, above what was there before: what LibTorch's allocator of that
/// device gave out. On the CPU that is what the calling thread asked for; memory that is not a tensor's is not seen.
int64_t peak_allocations(c10::Device device, const std::function<void()>& work);

}  // namespace settrain
