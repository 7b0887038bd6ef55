// A checkpoint: all that a run needs to be evaluated or to go on, in one safetensors file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>

#include "src/checkpoint/tensor_file.h"

namespace settrain {

/// Tensors: "model.*" (torchvision's names), "optimizer.*" (by parameter name: "optimizer.momentum.fc.weight"),
/// "loss.*", "selection.*" and scalars "state.*". Metadata: "config" (the resolved YAML), "card"
/// (formats/model_card.h), "data.*", "machine.*", and "logs.FILE" (bytes of that log when the checkpoint was made).
/// docs/file_formats.md lists them.
struct Checkpoint {
  TensorMap tensors;
  TextMap metadata;
  std::filesystem::path file;  // where it was loaded from; empty for a new one

  /// The file, for messages: "'runs/a/checkpoints/last.safetensors'".
  std::string place() const;

  void set_integer(const std::string& name, int64_t value);
  /// Throws RunError where there is no int64 scalar of that name.
  int64_t integer(const std::string& name) const;

  void set_real(const std::string& name, double value);
  /// Throws RunError where there is no float64 scalar of that name.
  double real(const std::string& name) const;

  /// Throws RunError where there is none of that name.
  const std::string& text(const std::string& name) const;

  /// Keeps how many bytes a log has by now, and their digest: the metadata "logs.FILE" and "logs.FILE.sha256".
  void add_log(const std::filesystem::path& log, uint64_t bytes);
  /// Throws RunError where there is no such number.
  uint64_t log_size(const std::filesystem::path& log) const;
  /// Why the log does not begin with those bytes ("is missing", ...), or an empty text where it does.
  std::string log_problem(const std::filesystem::path& log) const;

  /// Adds every tensor under `prefix` + its name. The tensors are shared, not copied.
  void add(const std::string& prefix, std::span<const std::pair<std::string, at::Tensor>> tensors);

  /// Whether there are tensors whose names start with `prefix`.
  bool has(const std::string& prefix) const;

  static constexpr const char* kAveraged = "ema.";

  /// The prefix of the weights that are evaluated: kAveraged where the run averages them, else "model.".
  std::string weights_prefix() const { return has(kAveraged) ? kAveraged : "model."; }

  /// Copies the tensors whose names start with `prefix` into `targets`, which have the names without it. The targets
  /// keep their memory, layout and device. Throws RunError, before anything is copied, that lists all the entries that
  /// are missing, too many, or of another shape or dtype.
  void copy_into(const std::string& prefix, std::span<const std::pair<std::string, at::Tensor>> targets) const;
};

/// Writes the file whole or not at all, with metadata "kind", "format_version" and "sha256" (of all else) added. Throws
/// RunError as write_tensor_file().
void save_checkpoint(const std::filesystem::path& file, const Checkpoint& checkpoint);

/// Throws RunError where the file is missing, damaged in a single bit, not a checkpoint of settrain, or of another
/// format version.
Checkpoint load_checkpoint(const std::filesystem::path& file);

}  // namespace settrain
