// Cards of trained models: model_card_from_text(), and back again.
#include <cmath>
#include <cstdint>
#include <string>

#include "src/formats/model_card.h"
#include "tests/support/fuzzing.h"

using namespace settrain;
using test::must;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto card = test::unless_refused([&] { return model_card_from_text(text, "'file'"); });
  if (!card) return 0;
  const size_t classes = card->class_names.size();
  must(classes > 0 && card->train_counts.size() == classes, "every class has a name and a number of images");
  must(card->superclass_of.size() == (card->superclass_names.empty() ? 0 : classes), "every class has a superclass");
  for (const int64_t superclass : card->superclass_of) {
    must(superclass >= 0 && superclass < std::ssize(card->superclass_names), "superclasses are there");
  }
  for (const std::string& name : card->class_names) {
    for (const char byte : name) must(static_cast<unsigned char>(byte) >= 0x20, "names hold no control characters");
  }
  for (const float value : card->std) must(std::isfinite(value) && value > 0, "pixels can be divided");
  must(std::isfinite(card->score_scale) && card->score_scale > 0, "scores can be scaled");
  must(model_card_from_text(to_text(*card), "'again'") == *card, "what is written is the same");
  return 0;
}
