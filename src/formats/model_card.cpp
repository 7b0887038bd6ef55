#include "src/formats/model_card.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>
#include <tuple>
#include <utility>

#include "src/core/error.h"
#include "src/core/strict_json.h"
#include "src/core/text.h"
#include "src/formats/contents.h"

namespace settrain {
namespace {

using nlohmann::json;

constexpr int64_t kCardVersion = 1;
constexpr size_t kMostDepthOfCard = 3;
constexpr int64_t kLargestSide = 1 << 13;          // pixels, as pipelines allow
constexpr int64_t kMostImages = int64_t{1} << 40;  // of a class
constexpr std::array<std::string_view, 4> kHeads{"linear", "normalised", "scaled", "two_head"};

// A folder, which gives a class its name, may be called anything.
std::vector<std::string> all_printable(std::vector<std::string> texts) {
  for (std::string& text : texts) text = printable(text);
  return texts;
}

Taxonomy all_printable(Taxonomy taxonomy) {
  taxonomy.ranks = all_printable(std::move(taxonomy.ranks));
  taxonomy.names = all_printable(std::move(taxonomy.names));
  return taxonomy;
}

// Reads one card; every failure names the place.
class CardReader {
 public:
  CardReader(const std::string& text, const std::string& place) : place_(place) {
    try {
      card_ = parse_strict_json(text, kMostDepthOfCard);
    } catch (const std::invalid_argument& problem) {
      fail(problem.what());
    }
    if (!card_.is_object()) fail("is no JSON object");
  }

  ModelCard read() const {
    if (const int64_t version = integer("version", 0, kMostImages); version != kCardVersion) {
      fail(fmt::format("is of version {}, and this program knows {}; use the program that wrote it", version,
                       kCardVersion));
    }
    ModelCard card;
    card.dataset = text("data");
    card.class_names = texts("classes");
    card.class_keys = texts("class_keys");
    card.superclass_names = texts("superclasses");
    card.train_counts = integers("train_images", kMostImages);
    const auto classes = card.class_names.size();
    if (classes == 0) fail("'classes' is empty");
    card.superclass_of = integers("superclass_of", std::ssize(card.superclass_names) - 1);
    check_length("class_keys", card.class_keys.size(), classes, true);
    check_length("train_images", card.train_counts.size(), classes, false);
    check_length("superclass_of", card.superclass_of.size(), classes, card.superclass_names.empty());
    card.taxonomy = read_taxonomy(card);
    card.channels = integer("channels", 1, 3);
    if (card.channels == 2) fail("'channels' is 2; expected 1 or 3");
    std::tie(card.input_height, card.input_width) = sides("input", 1);
    std::tie(card.image_height, card.image_width) = sides("images", 0);
    card.mean = reals("mean", card.channels);
    card.std = reals("std", card.channels);
    if (*std::min_element(card.std.begin(), card.std.end()) <= 0) fail("'std' is not above 0");
    read_resizing(card);
    card.score_scale = real(at("score_scale"), "score_scale");
    if (card.score_scale <= 0) fail("'score_scale' is not above 0");
    const std::string probability = text("probability");
    if (probability != "softmax" && probability != "sigmoid") fail("'probability' is neither softmax nor sigmoid");
    card.is_sigmoid = probability == "sigmoid";
    if (card_.contains("features_model")) card.features_model = text("features_model");
    card.head = text("head");
    if (std::find(kHeads.begin(), kHeads.end(), card.head) == kHeads.end()) {
      fail(fmt::format("the head {} is unknown", shown(card.head)));
    }
    return card;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw RunError(place_ + ": the model's card " + what); }

  const json& at(const char* name) const {
    const auto found = card_.find(name);
    if (found == card_.end()) fail(fmt::format("has no '{}'", name));
    return *found;
  }

  const json& list(const char* name) const {
    const json& value = at(name);
    if (!value.is_array()) fail(fmt::format("has no list in '{}'", name));
    return value;
  }

  // Early cards have none: their tree is that of the superclasses.
  Taxonomy read_taxonomy(const ModelCard& card) const {
    if (!card_.contains("taxonomy")) return superclass_taxonomy(card.superclass_names, card.superclass_of);
    try {
      return taxonomy_from_json(at("taxonomy"), card.class_names.size());
    } catch (const std::invalid_argument& problem) {
      fail(fmt::format("has in 'taxonomy' {}", problem.what()));
    }
  }

  // Early cards have neither.
  void read_resizing(ModelCard& card) const {
    if (card_.contains("interpolation")) card.interpolation = text("interpolation");
    if (card.interpolation != "bilinear" && card.interpolation != "bicubic") {
      fail(fmt::format("the interpolation {} is unknown", shown(card.interpolation)));
    }
    if (card_.contains("crop_share")) card.crop_share = real(at("crop_share"), "crop_share");
    constexpr double kLeast = 0.01;
    if (card.crop_share != 0 && (card.crop_share < kLeast || card.crop_share > 1)) {
      fail(fmt::format("has no share from {} to 1 in 'crop_share'", kLeast));
    }
  }

  void check_length(const char* name, size_t length, size_t expected, bool may_be_empty) const {
    if (length == expected || (length == 0 && may_be_empty)) return;
    fail(fmt::format("has {} entries in '{}', and {} classes", length, name, expected));
  }

  // Names are printed as they are, so none may hold what a terminal would obey.
  std::string plain(const json& value, const char* name) const {
    if (!value.is_string()) fail(fmt::format("has no text in '{}'", name));
    const auto& text = value.get_ref<const std::string&>();
    if (printable(text) != text) {
      fail(fmt::format("has control characters in '{}': {}", name, shown(text)));
    }
    return text;
  }

  std::string text(const char* name) const { return plain(at(name), name); }

  std::vector<std::string> texts(const char* name) const {
    std::vector<std::string> all;
    for (const json& value : list(name)) all.push_back(plain(value, name));
    return all;
  }

  int64_t whole(const json& value, const char* name, int64_t least, int64_t most) const {
    const bool fits = value.is_number_integer() && !(value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX);
    if (!fits || value.get<int64_t>() < least || value.get<int64_t>() > most) {
      fail(fmt::format("has no whole number from {} to {} in '{}'", least, most, name));
    }
    return value.get<int64_t>();
  }

  int64_t integer(const char* name, int64_t least, int64_t most) const { return whole(at(name), name, least, most); }

  std::vector<int64_t> integers(const char* name, int64_t most) const {
    std::vector<int64_t> all;
    for (const json& value : list(name)) all.push_back(whole(value, name, 0, most));
    return all;
  }

  // [height, width]
  std::pair<int64_t, int64_t> sides(const char* name, int64_t least) const {
    const json& both = list(name);
    if (both.size() != 2) fail(fmt::format("has no height and width in '{}'", name));
    return {whole(both[0], name, least, kLargestSide), whole(both[1], name, least, kLargestSide)};
  }

  double real(const json& value, const char* name) const {
    if (!value.is_number() || !std::isfinite(value.get<double>())) fail(fmt::format("has no number in '{}'", name));
    return value.get<double>();
  }

  std::vector<float> reals(const char* name, int64_t count) const {
    const json& values = list(name);
    if (std::ssize(values) != count)
      fail(fmt::format("has {} numbers in '{}', and {} channels", values.size(), name, count));
    std::vector<float> all;
    for (const json& value : values) {
      all.push_back(static_cast<float>(real(value, name)));
      if (!std::isfinite(all.back())) fail(fmt::format("has a number in '{}' that is too large", name));
    }
    return all;
  }

  const std::string& place_;
  json card_;
};

}  // namespace

std::string to_text(const ModelCard& card) {
  const nlohmann::ordered_json json{{"version", kCardVersion},
                                    {"data", printable(card.dataset)},
                                    {"classes", all_printable(card.class_names)},
                                    {"class_keys", all_printable(card.class_keys)},
                                    {"superclasses", all_printable(card.superclass_names)},
                                    {"superclass_of", card.superclass_of},
                                    {"taxonomy", to_json(all_printable(card.taxonomy))},
                                    {"train_images", card.train_counts},
                                    {"channels", card.channels},
                                    {"input", {card.input_height, card.input_width}},
                                    {"images", {card.image_height, card.image_width}},
                                    {"mean", card.mean},
                                    {"std", card.std},
                                    {"interpolation", card.interpolation},
                                    {"crop_share", card.crop_share},
                                    {"score_scale", card.score_scale},
                                    {"probability", card.is_sigmoid ? "sigmoid" : "softmax"},
                                    {"features_model", card.features_model},
                                    {"head", card.head}};
  // Bytes that are no UTF-8 are replaced: safetensors files hold none.
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

ModelCard model_card_from_text(const std::string& text, const std::string& place) {
  return CardReader(text, place).read();
}

}  // namespace settrain
