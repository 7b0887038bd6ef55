#include "src/train/peak_memory.h"

#include <vector>

#include "tests/support/catch2.h"

namespace settrain {
namespace {

TEST_CASE("extra memory is what was used for a while and given back") {
  const ExtraMemory memory;
  if (!memory.peak()) return;  // the system does not tell
  CHECK(memory.peak()->host < 16 << 20);
  std::vector<char>(64 << 20, 'x');
  CHECK(memory.peak()->host >= 60 << 20);
  CHECK(memory.peak()->host < 80 << 20);
  CHECK(ExtraMemory().peak()->host < 16 << 20);
}

TEST_CASE("the host says how much memory can be had") {
  CHECK(available_memory(c10::kCPU) > 0);
}

}  // namespace
}  // namespace settrain
