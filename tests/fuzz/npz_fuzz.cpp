// NumPy's .npz archives.
#include <cstdint>
#include <span>

#include "src/formats/npz.h"
#include "tests/support/fuzzing.h"
#include "tests/support/memory_file.h"

using namespace settrain;
using test::must;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const test::MemoryFile bytes(std::span(data, size));
  const auto texts = test::unless_refused([&] { return read_npz_texts(bytes.path(), {"class_names", "paths"}); });
  if (texts) must(texts->size() <= 2, "no list of texts comes twice");
  const auto arrays = test::unless_refused([&] { return read_npz(bytes.path(), {"scores", "labels"}); });
  if (!arrays) return 0;
  must(arrays->size() <= 2, "no array comes twice");
  for (const auto& [name, array] : *arrays) {
    uint64_t expected = bytes_of(array.dtype);
    for (const int64_t length : array.shape) expected *= static_cast<uint64_t>(length);
    must(array.bytes.size() == expected, "an array has the bytes of its shape");
    must(array.stride.size() == array.shape.size(), "an array has as many strides as sizes");
    must(array.bytes.size() <= 1040 * (size + 1), "no more bytes than deflate can hold in the file");
  }
  return 0;
}
