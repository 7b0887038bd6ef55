// Where a run's results come from: this program, and the files of a run folder that say everything needed to repeat it.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace settrain {

/// Which settrain this is, and what it was built with.
struct BuildInfo {
  const char* version;     // "0.1.0"
  const char* git_commit;  // of the source, "-dirty" behind it where tracked files differed; "unknown" outside a clone
  const char* compiler;    // "GNU 12.2.0"
  const char* yaml_cpp;    // versions of the libraries that cannot be asked for theirs
  const char* spdlog;
};

/// The build of this program.
BuildInfo build_info();

struct Experiment;
struct ResumePoint;
class RunFolder;

/// Facts that only the caller knows.
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

/// The object that write_provenance() wrote; null where there is no file. Throws RunError where it cannot be read or is
/// not a JSON object, and where its "resumed" is not a list.
nlohmann::ordered_json read_provenance(const std::filesystem::path& file);

/// Writes class counts, the list of image files and the resolved config, and the provenance of a run that starts. Where
/// it goes on from `resumed`, adds to the provenance where, when, with what and with which changes, as an element of
/// "resumed"; a provenance that is lost is begun anew, with a warning. `command_line`: as typed. Throws RunError.
void record_run(const Experiment& run, const RunFolder& folder, const std::vector<std::string>& command_line,
                const ResumePoint* resumed = nullptr);

}  // namespace settrain
