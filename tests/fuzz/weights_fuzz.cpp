// Files of weights of every format: WeightFile, and what is made of its contents.
#include <cstdint>
#include <span>
#include <vector>

#include "src/formats/contents.h"
#include "src/formats/weight_file.h"
#include "tests/support/fuzzing.h"
#include "tests/support/memory_file.h"

using namespace settrain;
using test::must;

namespace {

void check(WeightFile& file, size_t size) {
  uint64_t total = 0;
  for (const TensorEntry& entry : file.contents().tensors) {
    must(entry.storage.begin <= size && entry.storage.size <= size - entry.storage.begin, "storages lie in the file");
    must(misplacement(entry).empty(), "tensors lie in their storages");
    total += entry.num_bytes();
    must(total <= 8 * size, "no more bytes than the file's size allows");
    std::vector<uint8_t> memory(entry.num_bytes());  // of this size, so that a byte too many is found
    test::unless_refused([&] {
      file.read(entry, memory.data());
      return true;
    });
  }
  for (const char byte : describe_contents(file.contents())) {
    must(byte == '\n' || (byte >= ' ' && byte < 127), "what is shown is plain text");
  }
  for (const char* key : {"", "state_dict_ema"}) {
    const auto weights = test::unless_refused([&] { return find_state_dict(file.contents(), "'file'", key); });
    must(!weights || weights->tensors.size() <= file.contents().tensors.size(), "no tensor is made up");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const test::MemoryFile bytes(std::span(data, size));
  auto file = test::unless_refused([&] { return WeightFile(bytes.path()); });
  if (file) check(*file, size);
  return 0;
}
