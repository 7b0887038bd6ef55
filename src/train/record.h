// What a run folder says of the run's origin: config.yaml, class_counts.csv and provenance.json.
#pragma once

#include <string>
#include <vector>

#include "src/run_folder/run_folder.h"
#include "src/train/experiment.h"
#include "src/train/resume.h"

namespace settrain {

/// Writes the class counts and the resolved config, then the provenance of a run that starts. `command_line`: as typed.
/// Throws RunError.
void record_start(const Experiment& run, const RunFolder& folder, const std::vector<std::string>& command_line);

/// Writes class counts and config anew, and adds to the provenance where, when, with what and with which changes the
/// run goes on, as an element of "resumed"; a provenance that is lost is begun anew, with a warning. Throws RunError.
void record_resume(const Experiment& run, const RunFolder& folder, const std::vector<std::string>& command_line,
                   const ResumePoint& point);

}  // namespace settrain
