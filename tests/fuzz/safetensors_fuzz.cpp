// Headers of safetensors files: decode_safetensors_header(), and back again. The input is the header; the bytes that
// its offsets ask for are taken to be there.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "src/formats/safetensors.h"
#include "tests/support/fuzzing.h"

using namespace settrain;
using test::must;

namespace {

void check(const SafetensorsHeader& header, uint64_t data_size) {
  uint64_t reached = 0;
  for (const SafetensorsEntry& entry : header.entries) {
    must(entry.begin == reached && entry.end >= entry.begin, "tensors follow one another");
    reached = entry.end;
  }
  must(reached == data_size, "tensors fill the data");
  const std::string written = encode_safetensors_header(header, "'file'");
  must(written.size() % 8 == 0, "headers are padded to 8 bytes");
  const SafetensorsHeader again = decode_safetensors_header(written, data_size, "'again'");
  must(again.metadata == header.metadata && again.entries.size() == header.entries.size(),
       "what is written is the same");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  for (const uint64_t data_size : {0, 8, 64}) {
    const auto header = test::unless_refused([&] { return decode_safetensors_header(json, data_size, "'file'"); });
    if (header) check(*header, data_size);
  }
  return 0;
}
