#include "src/formats/model_card.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "src/core/error.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

using Catch::Contains;
using nlohmann::json;

ModelCard card() {
  return {.dataset = "trees",
          .class_names = {"Quercus robur", "Quercus petraea", "Fagus sylvatica \xC3\xA9"},
          .class_keys = {"q_robur", "q_petraea", "f_sylvatica"},
          .superclass_names = {"Quercus", "Fagus"},
          .superclass_of = {0, 0, 1},
          .taxonomy = make_taxonomy({"species", "genus", "family"},
                                    {{"Quercus", "Fagaceae"}, {"Quercus", "Fagaceae"}, {"Fagus", "Fagaceae"}}),
          .train_counts = {7, 0, 123456789},
          .channels = 3,
          .input_height = 224,
          .input_width = 196,
          .image_height = 0,
          .image_width = 0,
          .mean = {0.485F, 0.456F, 0.406F},
          .std = {0.229F, 0.224F, 0.225F},
          .interpolation = "bicubic",
          .crop_share = 224.0 / 236,
          .score_scale = 1.0 / 3,
          .is_sigmoid = true,
          .features_model = "5f3a",
          .head = "two_head"};
}

std::string changed(const char* name, const json& value) {
  json text = json::parse(to_text(card()));
  text[name] = value;
  return text.dump();
}

void check_refused(const std::string& text, const std::string& why) {
  CHECK_THROWS_AS(model_card_from_text(text, "'file'"), RunError);
  CHECK_THROWS_WITH(model_card_from_text(text, "'file'"), Contains("'file': the model's card") && Contains(why));
}

}  // namespace

TEST_CASE("a card comes back as it was, to the last bit") {
  CHECK(model_card_from_text(to_text(card()), "'file'") == card());
  ModelCard plain = card();
  plain.class_keys.clear();
  plain.superclass_names.clear();
  plain.superclass_of.clear();
  plain.taxonomy = {};
  plain.is_sigmoid = false;
  plain.features_model.clear();
  CHECK(model_card_from_text(to_text(plain), "'file'") == plain);
}

TEST_CASE("an early card says nothing of how images are resized") {
  json text = json::parse(to_text(card()));
  text.erase("interpolation");
  text.erase("crop_share");
  const ModelCard early = model_card_from_text(text.dump(), "'file'");
  CHECK(early.interpolation == "bilinear");
  CHECK(early.crop_share == 0);
}

TEST_CASE("names that a folder may have and a terminal would obey are written without harm") {
  ModelCard odd = card();
  odd.class_names = {"a\x1B[31mb", "c\xC2\x9B", "\xFF\xFE"};
  const ModelCard read = model_card_from_text(to_text(odd), "'file'");
  CHECK(read.class_names == std::vector<std::string>{"a?[31mb", "c?", "\xEF\xBF\xBD\xEF\xBF\xBD"});
}

TEST_CASE("a card that is none is refused") {
  check_refused("", "is not valid JSON");
  check_refused("[]", "is no JSON object");
  check_refused("{}", "has no 'version'");
  check_refused(std::string(100, '['), "nested more than");
  check_refused(R"({"version":1,"version":1})", "twice");
  check_refused(changed("version", 2), "is of version 2");
  check_refused("{\"version\":\"\xFF\"}", "is not valid JSON");
}

TEST_CASE("types, lengths and ranges of a card are checked") {
  check_refused(changed("classes", json::array()), "'classes' is empty");
  check_refused(changed("classes", {"a", "b"}), "3 entries in 'class_keys', and 2 classes");
  check_refused(changed("classes", {"a", "b", 3}), "no text in 'classes'");
  check_refused(changed("classes", "abc"), "no list in 'classes'");
  check_refused(changed("classes", {"a", "b", "\x1B[2J"}), "control characters in 'classes'");
  check_refused(changed("classes", {"a", "b", "\xC2\x9B"}), "control characters in 'classes'");
  check_refused(changed("superclass_of", {0, 0, 2}), "'superclass_of'");
  check_refused(changed("superclass_of", {0, 0, -1}), "'superclass_of'");
  check_refused(changed("superclass_of", json::array()), "0 entries in 'superclass_of'");
  check_refused(changed("superclasses", json::array()), "'superclass_of'");
  check_refused(changed("train_images", {1, 2}), "2 entries in 'train_images'");
  check_refused(changed("train_images", {1, 2, -3}), "'train_images'");
  check_refused(changed("train_images", {1, 2, 1e300}), "'train_images'");
  check_refused(changed("train_images", {1, 2, std::numeric_limits<uint64_t>::max()}), "'train_images'");
  check_refused(changed("channels", 2), "'channels' is 2");
  check_refused(changed("channels", 1), "3 numbers in 'mean', and 1 channels");
  check_refused(changed("channels", 3.5), "'channels'");
  check_refused(changed("input", {224}), "no height and width in 'input'");
  check_refused(changed("input", {0, 224}), "'input'");
  check_refused(changed("input", {int64_t{1} << 40, 224}), "'input'");
  check_refused(changed("mean", {0, 0, nullptr}), "no number in 'mean'");
  check_refused(changed("mean", {0, 0, 1e300}), "too large");
  check_refused(changed("std", {1, 1, 0}), "'std' is not above 0");
  check_refused(changed("interpolation", "nearest"), "the interpolation \"nearest\" is unknown");
  check_refused(changed("crop_share", 1.5), "'crop_share'");
  check_refused(changed("crop_share", 1e-9), "'crop_share'");
  check_refused(changed("crop_share", "1"), "no number in 'crop_share'");
  check_refused(changed("score_scale", -1), "'score_scale' is not above 0");
  check_refused(changed("score_scale", "1"), "no number in 'score_scale'");
  check_refused(changed("probability", "cosine"), "neither softmax nor sigmoid");
  check_refused(changed("head", "\x1B[2J"), "control characters in 'head'");
  check_refused(changed("head", "third"), "the head \"third\" is unknown");
}

TEST_CASE("an early card has the tree of its superclasses") {
  json text = json::parse(to_text(card()));
  text.erase("taxonomy");
  const Taxonomy tree = model_card_from_text(text.dump(), "'file'").taxonomy;
  CHECK(tree.ranks == std::vector<std::string>{"class", "superclass"});
  CHECK(tree.names == std::vector<std::string>{"Quercus", "Fagus", ""});
  for (const json& lists :
       {json(), json::array({json::array({"species"})}), json::array({1, 2, 3, 4}),
        json::array({json::array({"s", "g"}), json::array({"A"}), json::array({"A"}), json::array({"A", "X"})}),
        json::array({json::array({"s", "g"}), json::array({"A"}), json::array({"A"}), json::array({"\x1B[2J"})})}) {
    check_refused(changed("taxonomy", lists), "taxonomy");
  }
}

}  // namespace settrain
