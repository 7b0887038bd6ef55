// The form in which a trained model answers: run.inference.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "models/inference_form.h"
#include "src/core/progress_bar.h"
#include "src/inference/trained_model.h"
#include "src/train/experiment.h"

namespace settrain {

/// "exact", "fast" or "bf16", as in a config and in stored rules.
std::string name_of(InferenceForm form);

/// Whether models compute in that form there: bf16 not on a GPU, nor on a processor without instructions for it, and
/// fast not where networks compute in bf16 as they were trained.
bool has_form(InferenceForm form, const ComputePolicy& policy);

/// Prepares the model to answer in the form that its rules were calibrated with, or without rules in that of
/// run.inference. Where `settings` (key.path=value) set run.inference, in that form, with a warning where the rules
/// have another. Returns the form that it answers in, see prepare_run().
InferenceForm prepare_to_answer(TrainedModel& model, const std::vector<std::string>& settings);

/// Prepares the run's model, with its weights, by run.inference, to score images whose scores calibrate rules or are
/// written to a file. Returns the form that it answers in: the same one, or kExact, with a warning, where a
/// GPU or a processor without bf16 is asked for it, and where the fast form's scores of a random image are not those of
/// the exact one within 1e-4, or 1e-4 of the largest where that is above 1. A network that is trained in bf16 answers
/// as in training, unless bf16 is asked for.
InferenceForm prepare_run(Experiment& run);

/// The largest difference between a score of the run's model as prepare_run() has prepared it, times the loss' score
/// scale, and the same score in each other form that there is: over the first images of the split, 16 at most. The
/// model stays prepared. Empty where none of the images can be read.
std::map<std::string, double> differences_to_other_forms(Experiment& run, InferenceForm own, const std::string& split,
                                                         ProgressBar& bar);

}  // namespace settrain
