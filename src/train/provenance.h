// Where a run's results come from: everything needed to repeat it, beside its config.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace settrain {

/// What only the caller knows.
struct ProvenanceInput {
  std::vector<std::string> command_line;
  at::Device device = at::kCPU;  // where the model is trained
  int64_t seed = 0;
  int64_t rng_version = 0;
  std::string dataset;      // its name
  std::string data_digest;  // Dataset::digest
};

/// An object with the program's version and git commit, the command line, host, UTC date, threads, instruction set,
/// library versions, the device, seed and rng version, and the data's name and digest. For a CUDA device also its name,
/// compute capability and the runtime's version. The caller may add keys, such as "label_noise".
nlohmann::ordered_json collect_provenance(const ProvenanceInput& input);

/// A CUDA device's name, compute capability and memory, and the versions of runtime, cuDNN and driver. Throws Error
/// where CUDA cannot tell, and std::logic_error in a build without CUDA.
nlohmann::ordered_json describe_gpu(at::Device device);

/// Writes provenance.json whole or not at all (RunError).
void write_provenance(const std::filesystem::path& file, const nlohmann::ordered_json& provenance);

/// What write_provenance() wrote; null where there is no file. Throws RunError where it cannot be read or is
/// not a JSON object, and where its "resumed" is not a list.
nlohmann::ordered_json read_provenance(const std::filesystem::path& file);

}  // namespace settrain
