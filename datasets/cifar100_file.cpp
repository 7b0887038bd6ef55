#include "datasets/cifar100_file.h"

#include <fmt/format.h>

#include <array>
#include <fstream>

#include "src/core/digest.h"
#include "src/core/error.h"

namespace settrain {
namespace {

constexpr int64_t kPlane = 32 * 32;
constexpr int64_t kRecord = 2 + 3 * kPlane;

}  // namespace

Cifar100File read_cifar100_file(const std::filesystem::path& file, int64_t records) {
  std::error_code no_size;
  const auto size = static_cast<int64_t>(std::filesystem::file_size(file, no_size));
  std::ifstream stream(file, std::ios::binary);
  if (no_size || !stream) throw DataError(fmt::format("cannot open '{}'", file.string()));
  if (size != records * kRecord) {
    throw DataError(fmt::format("'{}': expected {} records of {} bytes, that is {} bytes; got {}. Get the file again",
                                file.string(), records, kRecord, records * kRecord, size));
  }
  Cifar100File content;
  content.pixels.resize(static_cast<size_t>(records * 3 * kPlane));
  uint8_t* pixel = content.pixels.data();
  Sha256 sha;
  std::array<uint8_t, kRecord> record;
  for (int64_t i = 0; i < records; ++i) {
    if (!stream.read(reinterpret_cast<char*>(record.data()), kRecord)) {
      throw DataError(fmt::format("'{}': cannot read record {}", file.string(), i));
    }
    sha.add(record);
    if (record[0] >= 20 || record[1] >= 100) {
      throw DataError(
          fmt::format("'{}': record {} has coarse label {} and fine label {}; expected less than 20 and 100. "
                      "Is this the binary version of CIFAR-100?",
                      file.string(), i, record[0], record[1]));
    }
    content.coarse.push_back(record[0]);
    content.fine.push_back(record[1]);
    const uint8_t* planes = record.data() + 2;
    for (int64_t p = 0; p < kPlane; ++p) {
      for (int64_t channel = 0; channel < 3; ++channel) *pixel++ = planes[channel * kPlane + p];
    }
  }
  content.sha256 = sha.hex();
  return content;
}

}  // namespace settrain
