// A run's answers, counted by class and shown on images.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "src/report/answers.h"

namespace settrain {

/// An object for the page:
///  - "checkpoint", "split", "images", "sets" (their metric), "threshold" (null for top-K), "probability" ("softmax");
///  - "classes": [name, training images, images, those whose best class is right, those whose set is] a class;
///  - "confusions" and, where there are superclasses, "superclasses": {"errors", "pairs"}, errors being the images
///  whose
///    best class is wrong, pairs [true, taken for, images, images of the true one] of the most confused;
///  - "examples": by kind ("correct", "missed", "large") objects {"picture", "truth", "truth_probability", "hit",
///    "size", "set"}, set being [class, probability] by falling probability, at most 12; or "examples_missing", a
///    sentence.
nlohmann::ordered_json answers_json(const Answers& answers);

}  // namespace settrain
