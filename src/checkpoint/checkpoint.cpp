#include "src/checkpoint/checkpoint.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/scalar_tensor.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <set>
#include <sstream>
#include <vector>

#include "src/checkpoint/tensor_file.h"
#include "src/core/digest.h"
#include "src/core/error.h"
#include "src/core/text.h"
#include "src/formats/contents.h"
#include "src/formats/weight_file.h"

namespace settrain {
namespace {

constexpr const char* kFormatVersion = "1";
constexpr const char* kDigest = "sha256";
constexpr const char* kLogs = "logs.";
constexpr const char* kLogDigest = ".sha256";

void check_metadata(const TextMap& metadata, const std::string& name, const std::string& expected,
                    const std::string& place, const std::string& advice) {
  const auto found = metadata.find(name);
  const std::string got = found == metadata.end() ? "none" : "'" + displayed(found->second) + "'";
  if (found == metadata.end() || found->second != expected) {
    throw RunError(place + ": expected " + name + " '" + expected + "', got " + got + "; " + advice);
  }
}

std::string describe(const at::Tensor& tensor) {
  std::ostringstream text;
  text << tensor.scalar_type() << " " << tensor.sizes();
  return text.str();
}

// "missing: a, b and 3 more"
std::string list(const std::string& title, std::vector<std::string> names) {
  if (names.empty()) return "";
  for (std::string& name : names) name = displayed(name);
  return fmt::format("\n  {}: {}", title, join_first(names, 8));
}

const at::Tensor& scalar(const Checkpoint& checkpoint, const std::string& name, at::ScalarType dtype,
                         const char* dtype_name) {
  const auto found = checkpoint.tensors.find(name);
  if (found == checkpoint.tensors.end() || found->second.scalar_type() != dtype || found->second.dim() != 0) {
    throw RunError(fmt::format("{}: expected a scalar '{}' of {}, got {}", checkpoint.place(), name, dtype_name,
                               found == checkpoint.tensors.end() ? "none" : describe(found->second)));
  }
  return found->second;
}

// SHA-256 of every tensor (name, dtype and shape as the file's header has them, values) and every text but itself
// (name, text), each in the order of the names; each part with its length in front, so that none runs into the next.
// The tensors are contiguous and on the CPU.
std::string digest_of(const TensorMap& tensors, const TextMap& metadata) {
  Sha256 sha;
  const auto add = [&sha](std::string_view bytes) { sha.add(fmt::format("{}:", bytes.size())).add(bytes); };
  for (const auto& [name, tensor] : tensors) {
    add(name);
    const auto dtype = dtype_of(tensor.scalar_type());
    add(dtype ? names_of(*dtype).safetensors : "?");
    add(fmt::format("{}", fmt::join(tensor.sizes(), ",")));
    add({static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()});
  }
  for (const auto& [name, text] : metadata) {
    if (name == kDigest) continue;
    add(name);
    add(text);
  }
  return sha.hex();
}

}  // namespace

std::string Checkpoint::place() const {
  return fmt::format("'{}'", file.string());
}

void Checkpoint::set_integer(const std::string& name, int64_t value) {
  tensors[name] = at::scalar_tensor(value, at::kLong);
}

int64_t Checkpoint::integer(const std::string& name) const {
  return scalar(*this, name, at::kLong, "int64").item<int64_t>();
}

void Checkpoint::set_real(const std::string& name, double value) {
  tensors[name] = at::scalar_tensor(value, at::kDouble);
}

double Checkpoint::real(const std::string& name) const {
  return scalar(*this, name, at::kDouble, "float64").item<double>();
}

const std::string& Checkpoint::text(const std::string& name) const {
  const auto found = metadata.find(name);
  if (found == metadata.end()) throw RunError(fmt::format("{} has no metadata '{}'", place(), name));
  return found->second;
}

void Checkpoint::add_log(const std::filesystem::path& log, uint64_t bytes) {
  const std::string name = kLogs + log.filename().string();
  metadata[name] = std::to_string(bytes);
  metadata[name + kLogDigest] = sha256_of_file(log, bytes);
}

uint64_t Checkpoint::log_size(const std::filesystem::path& log) const {
  const std::string name = kLogs + log.filename().string();
  const std::string& digits = text(name);
  uint64_t bytes = 0;
  const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), bytes);
  if (end.ec != std::errc() || end.ptr != digits.data() + digits.size()) {
    throw RunError(fmt::format("{}: expected a number of bytes in '{}', got '{}'", place(), name, digits));
  }
  return bytes;
}

std::string Checkpoint::log_problem(const std::filesystem::path& log) const {
  std::error_code error;
  const uint64_t expected = log_size(log), size = std::filesystem::file_size(log, error);
  if (error) return "is missing";
  if (size < expected) return fmt::format("has {} bytes, and had {}", size, expected);
  const bool same = sha256_of_file(log, expected) == text(kLogs + log.filename().string() + kLogDigest);
  return same ? "" : "holds something else than it did";
}

void Checkpoint::add(const std::string& prefix, std::span<const std::pair<std::string, at::Tensor>> added) {
  for (const auto& [name, tensor] : added) tensors[prefix + name] = tensor.detach();
}

bool Checkpoint::has(const std::string& prefix) const {
  const auto first = tensors.lower_bound(prefix);
  return first != tensors.end() && first->first.starts_with(prefix);
}

void Checkpoint::copy_into(const std::string& prefix,
                           std::span<const std::pair<std::string, at::Tensor>> targets) const {
  std::set<std::string> extra;
  for (const auto& [name, tensor] : tensors) {
    if (name.starts_with(prefix)) extra.insert(name);
  }
  std::vector<std::string> missing, different;
  for (const auto& [name, target] : targets) {
    const auto found = tensors.find(prefix + name);
    extra.erase(prefix + name);
    if (found == tensors.end()) {
      missing.push_back(prefix + name);
    } else if (found->second.sizes() != target.sizes() || found->second.scalar_type() != target.scalar_type()) {
      different.push_back(
          fmt::format("{} (expected {}, got {})", prefix + name, describe(target), describe(found->second)));
    }
  }
  if (!missing.empty() || !extra.empty() || !different.empty()) {
    throw RunError(fmt::format(
        "{} does not fit what this run has under '{}'; it was made with another configuration:{}{}{}", place(), prefix,
        list("missing", missing), list("too many", {extra.begin(), extra.end()}), list("different", different)));
  }
  const at::NoGradGuard no_grad;
  for (const auto& [name, target] : targets) target.copy_(tensors.at(prefix + name));
}

void save_checkpoint(const std::filesystem::path& file, const Checkpoint& checkpoint) {
  TextMap metadata = checkpoint.metadata;
  metadata["kind"] = kCheckpointKind;
  metadata["format_version"] = kFormatVersion;
  TensorMap plain;  // brought to the CPU and made contiguous once, to be digested and written
  for (const auto& [name, tensor] : checkpoint.tensors) plain.emplace(name, tensor.cpu().contiguous());
  metadata[kDigest] = digest_of(plain, metadata);
  write_tensor_file(file, plain, metadata);
}

Checkpoint load_checkpoint(const std::filesystem::path& file) {
  Safetensors contents = read_safetensors(file);
  const std::string place = "'" + file.string() + "'";
  check_metadata(contents.metadata, "kind", kCheckpointKind, place, "the file is not a checkpoint that settrain wrote");
  check_metadata(contents.metadata, "format_version", kFormatVersion, place,
                 "use the version of settrain that wrote it");
  check_metadata(contents.metadata, kDigest, digest_of(contents.tensors, contents.metadata), place,
                 "the file is damaged: use another checkpoint, or a copy");
  return {std::move(contents.tensors), std::move(contents.metadata), file};
}

}  // namespace settrain
