#include "src/formats/tensorboard.h"

#include <array>
#include <bit>
#include <chrono>
#include <string_view>

namespace settrain {
namespace {

constexpr uint32_t kPolynomial = 0x82F63B78;  // 0x1EDC6F41 with its bits reversed

constexpr std::array<uint32_t, 256> make_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t remainder = byte;
    for (int bit = 0; bit < 8; ++bit) remainder = (remainder >> 1) ^ (remainder & 1 ? kPolynomial : 0);
    table[byte] = remainder;
  }
  return table;
}

constexpr std::array<uint32_t, 256> kTable = make_table();

static_assert(std::endian::native == std::endian::little, "records and messages are little-endian");

template <class T>
std::string bytes_of(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// Protocol buffers: a message is a sequence of (field number and wire type, value).
enum class Wire : uint64_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

std::string tag(uint64_t field, Wire wire) {
  return varint(field << 3 | static_cast<uint64_t>(wire));
}

std::string bytes_field(uint64_t field, std::string_view bytes) {
  return tag(field, Wire::kBytes) + varint(bytes.size()) + std::string(bytes);
}

// Field numbers of tensorflow/core/util/event.proto and framework/summary.proto.
constexpr uint64_t kEventWallTime = 1, kEventStep = 2, kEventFileVersion = 3, kEventSummary = 5;
constexpr uint64_t kSummaryValue = 1, kValueTag = 1, kValueSimpleValue = 2;

std::string event_time() {
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  return tag(kEventWallTime, Wire::kFixed64) + bytes_of(std::chrono::duration<double>(since_1970).count());
}

std::string masked_checksum(std::string_view bytes) {
  const uint32_t checksum = crc32c(bytes);
  return bytes_of(std::rotr(checksum, 15) + uint32_t{0xA282EAD8});
}

std::string record(const std::string& message) {
  const std::string length = bytes_of(static_cast<uint64_t>(message.size()));
  return length + masked_checksum(length) + message + masked_checksum(message);
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  uint32_t remainder = 0xFFFFFFFF;
  for (const char byte : bytes) {
    remainder = (remainder >> 8) ^ kTable[(remainder ^ static_cast<unsigned char>(byte)) & 0xFF];
  }
  return ~remainder;
}

TensorboardWriter::TensorboardWriter(const std::filesystem::path& file) : file_(file) {
  if (file_.size() == 0) clear();
}

void TensorboardWriter::clear() {
  file_.truncate_to(0);
  file_.append(record(event_time() + bytes_field(kEventFileVersion, "brain.Event:2")));
}

void TensorboardWriter::add_scalars(int64_t step, const std::vector<std::pair<std::string, double>>& values) {
  std::string summary;
  for (const auto& [name, value] : values) {
    summary += bytes_field(kSummaryValue, bytes_field(kValueTag, name) + tag(kValueSimpleValue, Wire::kFixed32) +
                                              bytes_of(static_cast<float>(value)));
  }
  file_.append(record(event_time() + tag(kEventStep, Wire::kVarint) + varint(static_cast<uint64_t>(step)) +
                      bytes_field(kEventSummary, summary)));
}

uint64_t TensorboardWriter::offset() {
  file_.sync();
  return file_.size();
}

}  // namespace settrain
