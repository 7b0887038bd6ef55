#include "src/train/record.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "src/core/files.h"
#include "src/core/log.h"
#include "src/core/random.h"
#include "src/loader/sampler.h"
#include "src/train/provenance.h"

namespace settrain {
namespace {

nlohmann::ordered_json to_json(const LabelNoiseReport& noise) {
  nlohmann::ordered_json json{{"kind", noise.kind},
                              {"nominal_rate", noise.nominal_rate},
                              {"effective_rate", noise.effective_rate},
                              {"changed_rate", noise.changed_rate},
                              {"changed", noise.changed}};
  if (noise.within_superclass) json["within_superclass"] = *noise.within_superclass;
  json["digest"] = noise.digest;
  return json;
}

nlohmann::ordered_json to_json(const Pretrained& weights) {
  return {{"file", weights.file}, {"sha256", weights.sha256}, {"tensors", weights.num_tensors},
          {"from", weights.from}, {"drawn", weights.drawn},   {"change", weights.change}};
}

nlohmann::ordered_json provenance_of(const Experiment& run, const std::vector<std::string>& command_line) {
  nlohmann::ordered_json provenance = collect_provenance({.command_line = command_line,
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
  provenance["label_noise"] = to_json(run.label_noise);
  if (run.pretrained) provenance["pretrained"] = to_json(*run.pretrained);
  return provenance;
}

void record_config(const Experiment& run, const RunFolder& folder) {
  write_file_atomically(folder.class_counts(), class_counts_csv(run.dataset, run.loader.sampling()));
  write_file_atomically(folder.config(), run.config.to_yaml());
}

}  // namespace

void record_start(const Experiment& run, const RunFolder& folder, const std::vector<std::string>& command_line) {
  record_config(run, folder);
  write_provenance(folder.provenance(), provenance_of(run, command_line));
}

void record_resume(const Experiment& run, const RunFolder& folder, const std::vector<std::string>& command_line,
                   const ResumePoint& point) {
  record_config(run, folder);
  nlohmann::ordered_json provenance = read_provenance(folder.provenance());
  if (provenance.is_null()) {
    provenance = provenance_of(run, command_line);
    // Without a checkpoint the run was killed before the file was written.
    if (point.checkpoint) {
      log::warning(fmt::format("[run] '{}' was missing: the new one does not know how the run began",
                               folder.provenance().string()));
    }
  }
  nlohmann::ordered_json resumed = provenance_of(run, command_line);
  resumed["step"] = point.state.step;
  for (const auto& [path, before, after] : point.changes) resumed["changed"][path] = {before, after};
  provenance["resumed"].push_back(std::move(resumed));
  write_provenance(folder.provenance(), provenance);
}

}  // namespace settrain
