#include "datasets/feature_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <utility>

#include "src/core/digest.h"
#include "src/core/error.h"
#include "src/core/files.h"
#include "src/core/strict_json.h"
#include "src/core/text.h"
#include "src/formats/input_file.h"
#include "src/formats/npz.h"
#include "src/formats/safetensors.h"

namespace settrain {
namespace {

constexpr const char *kFeatures = "features", *kLabels = "labels", *kClassNames = "class_names", *kPaths = "paths",
                     *kFeatureModel = "checkpoint.sha256", *kSafetensors = ".safetensors", *kNpz = ".npz";
constexpr int64_t kMostClasses = 100'000;  // that labels alone may ask for, where there are fewer rows

// A float16: a sign, 5 bits of exponent, 10 of mantissa.
float from_half(uint16_t half) {
  const int exponent = (half >> 10) & 0x1f;
  const auto mantissa = static_cast<float>(half & 0x3ff);
  float value = 0;
  if (exponent == 0x1f) {
    value = mantissa == 0 ? INFINITY : NAN;
  } else {
    value = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(mantissa + 1024, exponent - 25);
  }
  return (half & 0x8000) != 0 ? -value : value;
}

// Element `i` of an array in memory that may lie at any byte.
template <typename T>
T element(const uint8_t* bytes, int64_t i) {
  T value;
  std::memcpy(&value, bytes + static_cast<size_t>(i) * sizeof value, sizeof value);
  return value;
}

// Nothing where the type is none of floats.
std::optional<float> float_at(Dtype dtype, const uint8_t* bytes, int64_t i) {
  switch (dtype) {
    case Dtype::kFloat64:
      return static_cast<float>(element<double>(bytes, i));
    case Dtype::kFloat32:
      return element<float>(bytes, i);
    case Dtype::kFloat16:
      return from_half(element<uint16_t>(bytes, i));
    case Dtype::kBfloat16:
      return std::bit_cast<float>(static_cast<uint32_t>(element<uint16_t>(bytes, i)) << 16);
    default:
      return std::nullopt;
  }
}

// Nothing where the type is none of integers. Numbers beyond int64 become negative, which no label is.
std::optional<int64_t> integer_at(Dtype dtype, const uint8_t* bytes, int64_t i) {
  switch (dtype) {
    case Dtype::kInt64:
    case Dtype::kUint64:
      return element<int64_t>(bytes, i);
    case Dtype::kInt32:
      return element<int32_t>(bytes, i);
    case Dtype::kInt16:
      return element<int16_t>(bytes, i);
    case Dtype::kInt8:
      return element<int8_t>(bytes, i);
    case Dtype::kUint32:
      return element<uint32_t>(bytes, i);
    case Dtype::kUint16:
      return element<uint16_t>(bytes, i);
    case Dtype::kUint8:
      return element<uint8_t>(bytes, i);
    default:
      return std::nullopt;
  }
}

void check_feature_shape(const InputFile& file, Dtype dtype, const std::vector<int64_t>& shape) {
  if (!float_at(dtype, std::array<uint8_t, 8>{}.data(), 0))
    file.fail(
        fmt::format("features are of dtype {}; expected float16, bfloat16, float32 or float64", names_of(dtype).name));
  if (shape.size() != 2 || shape[0] < 1 || shape[1] < 1)
    file.fail(fmt::format("features have the shape [{}]; expected [images, width], neither 0", fmt::join(shape, ", ")));
}

std::vector<int64_t> feature_labels(const InputFile& file, Dtype dtype, const std::vector<int64_t>& shape,
                                    int64_t stride, const uint8_t* bytes, int64_t images) {
  if (!integer_at(dtype, std::array<uint8_t, 8>{}.data(), 0))
    file.fail(fmt::format("labels are of dtype {}; expected whole numbers", names_of(dtype).name));
  if (shape.size() != 1 || shape[0] != images)
    file.fail(fmt::format("labels have the shape [{}]; expected [{}], one for each row of the features",
                          fmt::join(shape, ", "), images));
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < images; ++i) labels.push_back(*integer_at(dtype, bytes, i * stride));
  return labels;
}

std::vector<std::string> texts_of(const InputFile& file, const std::map<std::string, std::string>& metadata,
                                  const char* name) {
  const auto found = metadata.find(name);
  if (found == metadata.end() || found->second.empty()) return {};
  try {
    return parse_strict_json(found->second, 2).get<std::vector<std::string>>();
  } catch (const std::invalid_argument& problem) {
    file.fail(fmt::format("the metadata {}: {}", name, problem.what()));
  } catch (const nlohmann::json::exception&) {
    file.fail(fmt::format("the metadata {} is no JSON array of texts", name));
  }
}

FeatureFile read_safetensors_features(const InputFile& file) {
  const Contents contents = safetensors_contents(file);
  const auto tensor = [&](const char* name) {
    return std::ranges::find(contents.tensors, KeyPath{std::string(name)}, &TensorEntry::path);
  };
  const auto bytes_of_tensor = [&](const TensorEntry& entry) {
    std::vector<uint8_t> bytes(entry.storage.size);
    file.read(bytes.data(), bytes.size(), entry.storage.begin);
    return bytes;
  };
  const auto features = tensor(kFeatures);
  if (features == contents.tensors.end()) file.fail("has no tensor 'features'");
  check_feature_shape(file, features->dtype, features->shape);
  const int64_t images = features->shape[0], width = features->shape[1];
  FeatureFile read;
  if (features->dtype == Dtype::kFloat32 || features->dtype == Dtype::kBfloat16) {
    using enum FeatureTable::Stored;
    read.features = std::make_shared<const FeatureTable>(file.path(), features->storage.begin, images, width,
                                                         features->dtype == Dtype::kFloat32 ? kFloat32 : kBfloat16);
  } else {
    const std::vector<uint8_t> bytes = bytes_of_tensor(*features);
    std::vector<float> values(static_cast<size_t>(images * width));
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = *float_at(features->dtype, bytes.data(), static_cast<int64_t>(i));
    read.features = std::make_shared<const FeatureTable>(std::move(values), width);
  }
  if (const auto labels = tensor(kLabels); labels != contents.tensors.end())
    read.labels = feature_labels(file, labels->dtype, labels->shape, 1, bytes_of_tensor(*labels).data(), images);
  read.class_names = texts_of(file, contents.metadata, kClassNames);
  read.paths = texts_of(file, contents.metadata, kPaths);
  if (const auto model = contents.metadata.find(kFeatureModel); model != contents.metadata.end())
    read.model = model->second;
  return read;
}

FeatureFile read_npz_features(const InputFile& file) {
  const auto arrays = read_npz(file.path(), {kFeatures, kLabels});
  const auto found = arrays.find(kFeatures);
  if (found == arrays.end())
    file.fail("has no array 'features'; numpy.savez(FILE, features=..., labels=...) names its arrays so");
  const NumpyArray& features = found->second;
  check_feature_shape(file, features.dtype, features.shape);
  const int64_t images = features.shape[0], width = features.shape[1];
  std::vector<float> values;
  values.reserve(static_cast<size_t>(images * width));
  for (int64_t row = 0; row < images; ++row) {
    for (int64_t column = 0; column < width; ++column) {
      const int64_t at = row * features.stride[0] + column * features.stride[1];
      values.push_back(*float_at(features.dtype, features.bytes.data(), at));
    }
  }
  FeatureFile read;
  read.features = std::make_shared<const FeatureTable>(std::move(values), width);
  if (const auto labels = arrays.find(kLabels); labels != arrays.end()) {
    const NumpyArray& array = labels->second;
    read.labels = feature_labels(file, array.dtype, array.shape, array.stride.empty() ? 1 : array.stride[0],
                                 array.bytes.data(), images);
  }
  auto texts = read_npz_texts(file.path(), {kClassNames, kPaths, kFeatureModel});
  read.class_names = std::move(texts[kClassNames]);
  read.paths = std::move(texts[kPaths]);
  if (const auto& model = texts[kFeatureModel]; !model.empty()) read.model = model.front();
  return read;
}

void check_finite(const InputFile& file, const FeatureTable& features) {
  std::vector<float> row(static_cast<size_t>(features.width()));
  for (int64_t i = 0; i < features.size(); ++i) {
    features.read(i, row.data());
    float sum = 0;  // 0 times a finite number is 0, times another NaN
    for (const float value : row) sum += 0 * value;
    if (sum == 0) continue;
    const auto bad = std::ranges::find_if_not(row, [](float value) { return std::isfinite(value); });
    file.fail(fmt::format("the features of row {} (counted from 0) have {} in column {}", i,
                          std::isnan(*bad) ? "NaN" : "an infinite number", bad - row.begin()));
  }
}

void check_labels_and_names(const InputFile& file, const FeatureFile& read) {
  const int64_t images = read.features->size();
  const int64_t classes = read.class_names.empty() ? std::max(kMostClasses, images) : std::ssize(read.class_names);
  for (size_t i = 0; i < read.labels.size(); ++i) {
    if (read.labels[i] >= 0 && read.labels[i] < classes) continue;
    file.fail(fmt::format("the label of row {} (counted from 0) is {}; expected 0 to {}{}", i, read.labels[i],
                          classes - 1,
                          read.class_names.empty() ? "; where there are more classes, give their class_names"
                                                   : fmt::format(", since it names {} classes", classes)));
  }
  if (!read.paths.empty() && std::ssize(read.paths) != images)
    file.fail(fmt::format("has {} paths and {} rows of features", read.paths.size(), images));
  std::set<std::string> names;
  for (const std::string& name : read.class_names) {
    if (name.empty() || !names.insert(name).second)
      file.fail(fmt::format("the class name {} is empty or comes twice", shown(name)));
  }
}

std::string json_list(const std::vector<std::string>& texts) {
  return nlohmann::json(texts).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void write_as_safetensors(const std::filesystem::path& file, const FeatureArrays& arrays) {
  const int64_t images = std::ssize(arrays.features) / arrays.width;
  std::vector<SafetensorsEntry> entries{{kFeatures, Dtype::kFloat32, {images, arrays.width}}};
  if (!arrays.labels.empty()) entries.push_back({kLabels, Dtype::kInt64, {images}});
  std::map<std::string, std::string> metadata;
  if (!arrays.class_names.empty()) metadata[kClassNames] = json_list(arrays.class_names);
  if (!arrays.paths.empty()) metadata[kPaths] = json_list(arrays.paths);
  if (!arrays.model.empty()) metadata[kFeatureModel] = arrays.model;
  write_safetensors(file, entries, metadata, [&](const SafetensorsEntry& entry, AtomicFile& output) {
    if (entry.name == kFeatures) {
      output.write(arrays.features.data(), entry.size());
    } else {
      output.write(arrays.labels.data(), entry.size());
    }
  });
}

void write_as_npz(const std::filesystem::path& file, const FeatureArrays& arrays) {
  const int64_t images = std::ssize(arrays.features) / arrays.width;
  NpzWriter writer(file);
  writer.add(kFeatures, Dtype::kFloat32, {images, arrays.width}, std::as_bytes(std::span(arrays.features)));
  if (!arrays.labels.empty()) {
    writer.add(kLabels, Dtype::kInt64, {images}, std::as_bytes(std::span(arrays.labels)));
  }
  if (!arrays.class_names.empty()) writer.add_texts(kClassNames, arrays.class_names);
  if (!arrays.paths.empty()) writer.add_texts(kPaths, arrays.paths);
  if (!arrays.model.empty()) writer.add_texts(kFeatureModel, {arrays.model});
  writer.commit();
}

}  // namespace

void check_feature_file(const std::filesystem::path& file, const std::vector<std::string>& paths) {
  if (file.extension() == kNpz) return;
  if (file.extension() != kSafetensors) {
    throw ConfigError(
        fmt::format("--out {}: expected a name that ends in {} or {}", file.string(), kSafetensors, kNpz));
  }
  // The list is a text within the header's JSON, which escapes it once more; a tenth is left for all else.
  const std::string in_header = nlohmann::json(json_list(paths)).dump();
  if (in_header.size() > kMaxSafetensorsHeader / 10 * 9) {
    throw ConfigError(fmt::format(
        "--out {}: the paths of {} images take {}, more than a safetensors header should have; write a file NAME{}",
        file.string(), format_count(std::ssize(paths)), format_bytes(in_header.size()), kNpz));
  }
}

void write_feature_file(const std::filesystem::path& file, const FeatureArrays& arrays) {
  if (file.extension() == kNpz) {
    write_as_npz(file, arrays);
  } else {
    write_as_safetensors(file, arrays);
  }
}

FeatureFile read_feature_file(const std::filesystem::path& path) {
  try {
    const InputFile file(path);
    const std::string ending = path.extension().string();
    if (ending != kSafetensors && ending != kNpz) file.fail("a file of features ends in .safetensors or .npz");
    FeatureFile read = ending == kNpz ? read_npz_features(file) : read_safetensors_features(file);
    check_finite(file, *read.features);
    check_labels_and_names(file, read);
    read.digest = sha256_of_file(path);
    return read;
  } catch (const RunError& error) {
    throw DataError(error.what());
  }
}

void FeatureRows::read(int64_t id, Image&) const {
  throw DataError(describe(id) + ": features are no image");
}

std::string FeatureRows::describe(int64_t id) const {
  const std::string row = fmt::format("row {} of '{}'", id, path_.string());
  return file_.paths.empty() ? row : fmt::format("{} ({})", file_.paths[static_cast<size_t>(id)], row);
}

void check_belongs(const std::filesystem::path& train_path, const FeatureFile& train, const std::filesystem::path& path,
                   const FeatureFile& other) {
  const auto fail = [&](const std::string& how) {
    throw DataError(fmt::format("'{}' and '{}' {}", train_path.string(), path.string(), how));
  };
  if (train.digest == other.digest) fail("are the same file: images that train cannot judge or choose");
  const int64_t width = train.features->width();
  if (other.features->width() != width)
    fail(fmt::format("have features of widths {} and {}", width, other.features->width()));
  if (!train.model.empty() && !other.model.empty() && train.model != other.model)
    fail(fmt::format("have features of different weights, with the SHA-256 {} and {}", train.model, other.model));
  const std::vector<std::string>&ours = train.class_names, &theirs = other.class_names;
  const std::vector<int64_t>& unnamed = ours.empty() ? train.labels : other.labels;
  const auto names = std::max(ours.size(), theirs.size());
  if (ours.empty() != theirs.empty() && !unnamed.empty() && std::ranges::max(unnamed) >= static_cast<int64_t>(names))
    fail(fmt::format("differ: one names {} classes, and the other has the label {}", names, std::ranges::max(unnamed)));
  if (ours.empty() || theirs.empty() || ours == theirs) return;
  if (ours.size() != theirs.size()) fail(fmt::format("have {} and {} classes", ours.size(), theirs.size()));
  const auto [one, another] = std::ranges::mismatch(ours, theirs);
  fail(fmt::format("name class {} {} and {}", one - ours.begin(), in_quotes(*one), in_quotes(*another)));
}

}  // namespace settrain
