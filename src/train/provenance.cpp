#include "src/train/provenance.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <fmt/format.h>
#include <sys/utsname.h>
#include <torch/version.h>

#include <chrono>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "datasets/decode_image.h"
#include "src/core/error.h"
#include "src/core/files.h"
#include "src/train/build_info.h"

#ifdef SETTRAIN_HAS_CUDA
#include "src/core/cuda_check.h"
#endif

namespace settrain {
namespace {

using Json = nlohmann::ordered_json;

// "2025-03-01T12:34:56Z"
std::string utc_now() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
                     parts.tm_hour, parts.tm_min, parts.tm_sec);
}

std::string operating_system() {
  utsname system{};
  return ::uname(&system) == 0 ? fmt::format("{} {} {}", system.sysname, system.release, system.machine) : "unknown";
}

// The processor as Linux names it.
std::string processor() {
  std::ifstream input("/proc/cpuinfo");
  for (std::string line; std::getline(input, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

#ifdef SETTRAIN_HAS_CUDA
// 13000 is written 13.0.
std::string cuda_version(int number) {
  return fmt::format("{}.{}", number / 1000, number % 1000 / 10);
}
#endif

}  // namespace

nlohmann::ordered_json describe_gpu([[maybe_unused]] at::Device device) {
#ifdef SETTRAIN_HAS_CUDA
  constexpr const char* kDoing = "describing the device";
  int index = device.index(), runtime = 0, driver = 0;
  if (!device.has_index()) cuda_check(cudaGetDevice(&index), kDoing);
  cudaDeviceProp properties;
  cuda_check(cudaGetDeviceProperties(&properties, index), kDoing);
  cuda_check(cudaRuntimeGetVersion(&runtime), kDoing);
  cuda_check(cudaDriverGetVersion(&driver), kDoing);
  return {{"name", properties.name},
          {"compute_capability", fmt::format("{}.{}", properties.major, properties.minor)},
          {"memory_bytes", properties.totalGlobalMem},
          {"runtime", cuda_version(runtime)},
          {"cudnn", at::detail::getCUDAHooks().versionCuDNN()},
          {"driver", cuda_version(driver)}};
#else
  throw std::logic_error("describe_gpu: this build has no CUDA");
#endif
}

nlohmann::ordered_json collect_provenance(const ProvenanceInput& input) {
  Json json;
  json["settrain"] = build_info().version;
  json["git_commit"] = build_info().git_commit;
  json["command_line"] = input.command_line;
  json["date"] = utc_now();
  json["host"] = host_name();
  json["operating_system"] = operating_system();
  json["processor"] = processor();
  json["instruction_set"] = at::get_cpu_capability();
  json["threads"] = at::get_num_threads();
  json["device"] = input.device.str();
  if (input.device.is_cuda()) json["cuda"] = describe_gpu(input.device);
  json["compiler"] = build_info().compiler;
  json["libraries"] = {{"libtorch", TORCH_VERSION},
                       {"opencv", decoder_version()},
                       {"yaml-cpp", build_info().yaml_cpp},
                       {"spdlog", build_info().spdlog}};
  json["seed"] = input.seed;
  json["rng_version"] = input.rng_version;
  json["dataset"] = input.dataset;
  json["data_digest"] = input.data_digest;
  return json;
}

void write_provenance(const std::filesystem::path& file, const nlohmann::ordered_json& provenance) {
  // A command line may hold bytes that are not UTF-8; JSON cannot.
  write_file_atomically(file, provenance.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

nlohmann::ordered_json read_provenance(const std::filesystem::path& file) {
  if (!std::filesystem::exists(file)) return nullptr;
  if (std::filesystem::is_regular_file(file)) {
    std::ifstream input(file);
    Json json = Json::parse(input, nullptr, /*allow_exceptions=*/false);
    if (json.is_object() && json.value("resumed", Json::array()).is_array()) return json;
  }
  throw RunError(fmt::format(
      "'{}' is damaged or cannot be read: put it back as it was, or move it away and the run goes on with a new one",
      file.string()));
}

}  // namespace settrain
