// The card of a trained model: with weights and config all that it needs to answer about images without its training
// data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/core/taxonomy.h"

namespace settrain {

struct ModelCard {
  std::string dataset;                                      // its name
  std::vector<std::string> class_names;                     // [classes]
  std::vector<std::string> class_keys;                      // [classes] what files call them besides; or empty
  std::vector<std::string> superclass_names;                // or empty
  std::vector<int64_t> superclass_of;                       // [classes], or empty
  Taxonomy taxonomy;                                        // of the classes; empty where there are no superclasses
  std::vector<int64_t> train_counts;                        // [classes] training images, label noise included
  int64_t channels = 0, input_height = 0, input_width = 0;  // of the model's input
  int64_t image_height = 0, image_width = 0;                // of every image of the data set; 0: they differ
  std::vector<float> mean, std;                             // [channels] normalisation, of pixels in [0, 1]
  std::string interpolation = "bilinear";                   // or "bicubic": what data.interpolation came to
  double crop_share = 0;                                    // what data.resize_size: auto follows; 0: the pipeline
  double score_scale = 1;   // multiplies scores before they become probabilities: Loss::score_scale()
  bool is_sigmoid = false;  // a class' probability is the sigmoid of its score, not one of a softmax
  /// SHA-256 of the weights that made the features on which a head without a body was trained; or empty.
  std::string features_model;
  std::string head;  // the one that answers: "linear", "normalised", "scaled", "two_head" (its multi-label head)

  bool operator==(const ModelCard&) const = default;
};

/// As text (JSON), for the metadata "card" of checkpoints and exported models. Control characters in names become
/// question marks, and bytes that are no UTF-8 become U+FFFD.
std::string to_text(const ModelCard& card);

/// Trusts nothing: throws RunError "`place`: ..." that says what is wrong where the text is not such a card: no JSON, a
/// wrong type, lists of other lengths than the classes', numbers out of range, names with control characters.
ModelCard model_card_from_text(const std::string& text, const std::string& place);

}  // namespace settrain
