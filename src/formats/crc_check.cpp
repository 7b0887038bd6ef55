#include "src/formats/crc_check.h"

#include <zlib.h>

#include <algorithm>
#include <vector>

namespace settrain {

void check_crc(const InputFile& file, const Storage& storage) {
  constexpr uint64_t kPiece = 1 << 20;
  if (storage.crc == 0) return;
  uLong crc = crc32(0, nullptr, 0);
  std::vector<Bytef> bytes(std::min(kPiece, storage.size));
  for (uint64_t done = 0; done < storage.size; done += bytes.size()) {
    bytes.resize(std::min(kPiece, storage.size - done));
    file.read(bytes.data(), bytes.size(), storage.begin + done);
    crc = crc32(crc, bytes.data(), static_cast<uInt>(bytes.size()));
  }
  if (crc != storage.crc) {
    file.fail("it is damaged: the " + std::to_string(storage.size) + " bytes from byte " +
              std::to_string(storage.begin) + " on have another checksum than its directory says. Get it again");
  }
}

}  // namespace settrain
