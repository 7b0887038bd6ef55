// IDX files, plain and compressed: read_idx().
#include <algorithm>
#include <cstdint>
#include <span>

#include "datasets/readers.h"
#include "src/core/digest.h"
#include "tests/support/fuzzing.h"
#include "tests/support/memory_file.h"

using namespace settrain;
using test::must;

namespace {

constexpr int64_t kMostValues = 1 << 20;

void check(std::span<const uint8_t> bytes, int rank, const IdxArray& array) {
  must(array.sizes.size() == static_cast<size_t>(rank), "there are as many sizes as dimensions");
  int64_t values = 1;
  for (const int64_t size : array.sizes) {
    must(size >= 0, "no size is negative");
    values *= size;
  }
  must(values <= kMostValues, "no more values than were allowed");
  must(std::ssize(array.values) == values, "there are as many values as the sizes say");
  if (bytes[0] != 0) return;  // compressed
  const auto content = bytes.subspan(4 + 4 * array.sizes.size());
  must(std::equal(array.values.begin(), array.values.end(), content.begin(), content.end()),
       "the values are what lies behind the header");
  must(array.sha256 == Sha256().add(bytes).hex(), "the digest is the file's");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span bytes(data, size);
  const test::MemoryFile file(bytes);
  for (const int rank : {1, 3}) {
    const auto array = test::unless_refused([&] { return read_idx(file.path(), rank, kMostValues); });
    if (array) check(bytes, rank, *array);
  }
  return 0;
}
