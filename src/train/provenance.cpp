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

#include "datasets/decoding/decode_image.h"
#include "datasets/recorded_files.h"
#include "src/core/error.h"
#include "src/core/files.h"
#include "src/core/log.h"
#include "src/core/random.h"
#include "src/loader/sampler.h"
#include "src/run_folder/run_folder.h"
#include "src/train/experiment.h"
#include "src/train/resume_point.h"

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

Json to_json(const LabelNoiseReport& noise) {
  Json json{{"kind", noise.kind},
            {"nominal_rate", noise.nominal_rate},
            {"effective_rate", noise.effective_rate},
            {"changed_rate", noise.changed_rate},
            {"changed", noise.changed}};
  if (noise.within_superclass) json["within_superclass"] = *noise.within_superclass;
  json["digest"] = noise.digest;
  return json;
}

Json to_json(const Pretrained& weights) {
  return {{"file", weights.file}, {"sha256", weights.sha256}, {"tensors", weights.num_tensors},
          {"from", weights.from}, {"drawn", weights.drawn},   {"change", weights.change}};
}

Json provenance_of(const Experiment& run, const std::vector<std::string>& command_line) {
  Json provenance = collect_provenance({.command_line = command_line,
                                        .device = run.device,
                                        .seed = run.general.seed,
                                        .rng_version = kRngVersion,
                                        .dataset = run.dataset.name,
                                        .data_digest = run.dataset.digest});
  if (run.group->world_size() > 1) {
    provenance["processes"] = {
        {"count", run.group->world_size()},
        {"hosts", run.group->hosts()},
        {"images_per_step", run.group->world_size() * run.train.accumulate * run.loader.options.batch_size}};
  }
  for (const std::string& name : split_names(run.dataset)) {
    const std::string& digest = split_named(run.dataset, name).digest;
    if (!digest.empty()) provenance["split_digests"][name] = digest;
  }
  provenance["classes"] = run.dataset.num_classes();
  if (!run.fitted.empty()) provenance["fitted"] = run.fitted;
  provenance["input"] = {{"size", {run.input.height, run.input.width}},
                         {"mean", run.loader.normalisation.mean},
                         {"std", run.loader.normalisation.std}};
  provenance["label_noise"] = to_json(run.label_noise);
  if (run.pretrained) provenance["pretrained"] = to_json(*run.pretrained);
  return provenance;
}

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
  utsname system{};
  json["operating_system"] =
      ::uname(&system) == 0 ? fmt::format("{} {} {}", system.sysname, system.release, system.machine) : "unknown";
  json["processor"] = processor();
  json["instruction_set"] = at::get_cpu_capability() + (may_take_amx() ? ", AMX" : "");
  json["threads"] = at::get_num_threads();
  json["device"] = input.device.str();
  if (input.device.is_cuda()) json["cuda"] = describe_gpu(input.device);
  json["compiler"] = build_info().compiler;
  json["libraries"] = {
      {"libtorch", TORCH_VERSION}, {"yaml-cpp", build_info().yaml_cpp}, {"spdlog", build_info().spdlog}};
  for (const auto& [library, version] : image_library_versions()) json["libraries"][library] = version;
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

void record_run(const Experiment& run, const RunFolder& folder, const std::vector<std::string>& command_line,
                const ResumePoint* resumed) {
  write_file_atomically(folder.class_counts(), class_counts_csv(run.dataset, run.loader.sampling()));
  std::vector<const Split*> splits;
  for (const std::string& name : split_names(run.dataset)) splits.push_back(&split_named(run.dataset, name));
  if (run.threshold_split) splits.push_back(&*run.threshold_split);
  if (const std::string files = list_of_files(splits); !files.empty())
    write_file_atomically(folder.data_files(), files);
  write_file_atomically(folder.config(), run.config.to_yaml());
  Json provenance = resumed ? read_provenance(folder.provenance()) : nullptr;
  if (provenance.is_null()) {
    provenance = provenance_of(run, command_line);
    // Without a checkpoint the run was killed before the file was written.
    if (resumed && resumed->checkpoint) {
      log::warning(fmt::format("[run] '{}' was missing: the new one does not know how the run began",
                               folder.provenance().string()));
    }
  }
  if (resumed) {
    Json entry = provenance_of(run, command_line);
    entry["step"] = resumed->state.step;
    for (const auto& [path, before, after] : resumed->changes) entry["changed"][path] = {before, after};
    provenance["resumed"].push_back(std::move(entry));
  }
  write_provenance(folder.provenance(), provenance);
}

}  // namespace settrain
