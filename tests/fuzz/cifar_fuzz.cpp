// CIFAR-100's binary files: read_cifar100_file().
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

constexpr int64_t kPlane = 32 * 32, kRecord = 2 + 3 * kPlane;

void check(std::span<const uint8_t> bytes, int64_t records, const Cifar100File& file) {
  must(std::ssize(bytes) == records * kRecord, "no file of another size is read");
  must(std::ssize(file.coarse) == records && std::ssize(file.fine) == records, "every record has its labels");
  must(std::ssize(file.pixels) == records * 3 * kPlane, "every record has its pixels");
  for (int64_t i = 0; i < records; ++i) {
    const uint8_t* record = &bytes[static_cast<size_t>(i * kRecord)];
    const uint8_t coarse = file.coarse[static_cast<size_t>(i)], fine = file.fine[static_cast<size_t>(i)];
    must(coarse < 20 && fine < 100, "labels are in range");
    must(coarse == record[0] && fine == record[1], "labels are the record's");
    const uint8_t* last = &file.pixels[static_cast<size_t>((i + 1) * 3 * kPlane - 3)];
    for (int64_t channel = 0; channel < 3; ++channel) {
      must(last[channel] == record[1 + (channel + 1) * kPlane], "the last pixel is the planes' last");
    }
  }
  must(file.sha256 == Sha256().add(bytes).hex(), "the digest is the file's");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span bytes(data, size);
  const test::MemoryFile file(bytes);
  for (int64_t records = 0; records <= 3; ++records) {
    const auto content = test::unless_refused([&] { return read_cifar100_file(file.path(), records); });
    if (content) check(bytes, records, *content);
  }
  return 0;
}
