// The form in which a trained model answers: run.inference.
#pragma once

#include <string>
#include <vector>

#include "models/inference_form.h"
#include "src/inference/trained_model.h"
#include "src/train/experiment.h"

namespace settrain {

/// "exact", "fast" or "bf16", as in a config and in stored rules.
std::string name_of(InferenceForm form);

/// Prepares the model to answer in the form that its rules were calibrated with, or without rules in that of
/// run.inference. Where `settings` (key.path=value) set run.inference, in that form, with a warning where the rules
/// have another. Returns the form that it answers in, see prepare_run().
InferenceForm prepare_to_answer(TrainedModel& model, const std::vector<std::string>& settings);

/// Prepares the run's model, with its weights, by run.inference, to score images whose scores calibrate rules or are
/// written to a file. Returns the form that it answers in: the same one, or kExact, with a warning, where a
/// GPU or a processor without bf16 is asked for it, and where the fast form's scores of a random image are not those of
/// the exact one within 1e-4 of the largest. A network that is trained in bf16 answers as in training, unless bf16 is
/// asked for.
InferenceForm prepare_run(Experiment& run);

}  // namespace settrain
