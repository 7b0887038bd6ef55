// Bytes of pickles, zip archives and files of torch.save, made by hand, including some that no Python writes.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace settrain::test {

template <class Integer>
std::string little_endian(Integer value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

// --- Pickles. Each returns the opcodes that leave one value on the stack.

inline std::string text(const std::string& value) {
  return "X" + little_endian(static_cast<uint32_t>(value.size())) + value;
}

inline std::string integer(int64_t value) {
  return "\x8a\x08" + little_endian(value);
}

inline std::string global(const std::string& module, const std::string& name) {
  return "c" + module + "\n" + name + "\n";
}

inline std::string joined(const std::vector<std::string>& values) {
  std::string bytes;
  for (const std::string& value : values) bytes += value;
  return bytes;
}

inline std::string tuple(const std::vector<std::string>& values) {
  return "(" + joined(values) + "t";
}

inline std::string integers(const std::vector<int64_t>& values) {
  std::vector<std::string> items;
  for (const int64_t value : values) items.push_back(integer(value));
  return tuple(items);
}

// A dict of `items`: key, value, key, value, ...
inline std::string dict(const std::vector<std::string>& items) {
  return "}(" + joined(items) + "u";
}

inline std::string call(const std::string& function, const std::vector<std::string>& arguments) {
  return function + tuple(arguments) + "R";
}

inline std::string ordered_dict(const std::vector<std::string>& items = {}) {
  return call(global("collections", "OrderedDict"), {}) + "(" + joined(items) + "u";
}

inline std::string storage(const std::string& key, int64_t elements, const std::string& type = "FloatStorage") {
  return tuple({text("storage"), global("torch", type), text(key), text("cpu"), integer(elements)}) + "Q";
}

inline std::string tensor(const std::string& of_storage, int64_t offset, const std::vector<int64_t>& shape,
                          const std::vector<int64_t>& stride) {
  return call(global("torch._utils", "_rebuild_tensor_v2"),
              {of_storage, integer(offset), integers(shape), integers(stride), "\x89", ordered_dict()});
}

inline std::string pickle(const std::string& value) {
  return "\x80\x02" + value + ".";
}

// --- Zip archives

struct ZipEntry {
  std::string name, content;
  uint16_t method = 0, flags = 0;
  std::string packed = {};  // stored instead of `content`, unless empty
};

class ZipBytes {
 public:
  ZipBytes& add(const ZipEntry& entry) {
    const uint32_t crc = static_cast<uint32_t>(
        crc32(0, reinterpret_cast<const Bytef*>(entry.content.data()), static_cast<uInt>(entry.content.size())));
    const std::string& stored = entry.packed.empty() ? entry.content : entry.packed;
    const std::string common = little_endian(entry.flags) + little_endian(entry.method) + little_endian(uint32_t{0}) +
                               little_endian(crc) + little_endian(static_cast<uint32_t>(stored.size())) +
                               little_endian(static_cast<uint32_t>(entry.content.size())) +
                               little_endian(static_cast<uint16_t>(entry.name.size())) + little_endian(uint16_t{0});
    const auto at = static_cast<uint32_t>(content_.size());
    content_ += "PK\x03\x04" + little_endian(uint16_t{20}) + common + entry.name + stored;
    directory_ += "PK\x01\x02" + little_endian(uint32_t{20 << 16 | 20}) + common + std::string(10, '\0') +
                  little_endian(at) + entry.name;
    ++members_;
    return *this;
  }

  // The archive. The arguments falsify the counts in the record at its end.
  std::string bytes(int32_t more_members = 0, int32_t later = 0) const {
    const auto members = static_cast<uint16_t>(members_ + more_members);
    return content_ + directory_ + "PK\x05\x06" + std::string(4, '\0') + little_endian(members) +
           little_endian(members) + little_endian(static_cast<uint32_t>(directory_.size())) +
           little_endian(static_cast<uint32_t>(static_cast<int32_t>(content_.size()) + later)) + std::string(2, '\0');
  }

 private:
  std::string content_, directory_;
  int32_t members_ = 0;
};

// --- Files of torch.save

inline std::string floats(size_t count) {
  std::string bytes;
  for (size_t i = 0; i < count; ++i) bytes += little_endian(static_cast<float>(i));
  return bytes;
}

// `value` pickled, and storages by their keys "0", "1", ...
inline ZipBytes torch_zip(const std::string& value, const std::vector<std::string>& storages) {
  ZipBytes zip;
  zip.add({"archive/data.pkl", pickle(value)});
  for (size_t i = 0; i < storages.size(); ++i) zip.add({"archive/data/" + std::to_string(i), storages[i]});
  return zip;
}

// The format before PyTorch 1.6, with storages of floats.
inline std::string torch_legacy(const std::string& value, const std::vector<std::string>& storages) {
  std::string keys, content;
  for (size_t i = 0; i < storages.size(); ++i) {
    keys += text(std::to_string(i));
    content += little_endian(static_cast<int64_t>(storages[i].size() / sizeof(float))) + storages[i];
  }
  return pickle(std::string("\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 12)) + pickle(integer(1001)) +
         pickle(dict({text("little_endian"), "\x88"})) + pickle(value) + pickle("](" + keys + "e") + content;
}

}  // namespace settrain::test
