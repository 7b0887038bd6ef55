#include "src/serve/serve.h"

#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <new>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "datasets/decoding/decode_image.h"
#include "datasets/decoding/image_header.h"
#include "metrics/sets/rules/rule_terms.h"
#include "src/core/digest.h"
#include "src/core/error.h"
#include "src/core/process.h"
#include "src/core/text.h"
#include "src/loader/loader.h"
#include "src/loader/transform.h"
#include "src/serve/batch_scorer.h"
#include "src/serve/http/http_server.h"
#include "src/serve/page_parts.h"
#include "src/train/provenance.h"

namespace settrain {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kLargeImage = 10'000'000;  // pixels

// Turns the bytes of an image file into a model's input. Thread-safe. Decodes `at_once` images at a time, and at most
// one of them has more than kLargeImage pixels, which bounds the memory. Further images wait for their turn.
class ImageReader {
 public:
  ImageReader(const TrainedModel& model, int64_t at_once, int64_t most_pixels)
      : transform_(evaluation_transform(model.loader, model.card.image_height, model.card.image_width, model.view_use)),
        decode_(decode_options(model)),
        most_pixels_(most_pixels) {
    prepare_decoding();
    for (int64_t i = 0; i < at_once; ++i) free_.push_back(std::make_unique<TransformMemory>());
  }

  // Returns [views, channels, height, width], as `settrain predict` makes them. Throws HttpError 400 where the image
  // cannot be decoded, 413 where its header has more than `most_pixels` pixels, 503 where its turn does not come before
  // `deadline`.
  at::Tensor read(const Upload& image, Clock::time_point deadline) {
    const std::span bytes(reinterpret_cast<const uint8_t*>(image.bytes.data()), image.bytes.size());
    const ImageHeader header = parse_image_header(bytes);
    if (header.height == 0 || header.width == 0) {
      throw HttpError(400, fmt::format("{} cannot be read: is no JPEG, PNG, BMP, WebP or TIFF image", image.name),
                      image.field);
    }
    if (header.width > most_pixels_ / header.height) {
      throw HttpError(413,
                      fmt::format("{} has {} x {} pixels, more than the {} that are taken", image.name, header.width,
                                  header.height, format_count(most_pixels_)),
                      image.field);
    }
    Turn turn(*this, header.width > kLargeImage / header.height, deadline);
    std::vector<View> views;
    const auto choose = [&](int64_t height, int64_t width) {
      views = transform_.pipeline().views_of(height, width, /*epoch=*/0, /*sample_id=*/0);
      return needed_pixels(views);
    };
    try {
      decode_image(bytes, decode_, choose, turn.memory().part);
    } catch (const std::bad_alloc&) {
      throw HttpError(503, fmt::format("there is not enough memory at the moment to decode {}", image.name));
    } catch (const std::runtime_error& error) {
      throw HttpError(400, fmt::format("{} cannot be read: {}", image.name, error.what()), image.field);
    }
    at::Tensor input = empty_views(transform_.pipeline().views(), transform_);
    transform_.render(turn.memory().part, views, turn.memory().renderer, input.mutable_data_ptr());
    return input;
  }

  at::Tensor black_image() const { return empty_views(transform_.pipeline().views(), transform_).zero_(); }

 private:
  // Holds one of the reader's memories while an image is decoded.
  class Turn {
   public:
    Turn(ImageReader& reader, bool is_large, Clock::time_point deadline) : reader_(reader), is_large_(is_large) {
      std::unique_lock lock(reader_.mutex_);
      const auto is_free = [this] { return !reader_.free_.empty() && !(is_large_ && reader_.decodes_large_); };
      if (!reader_.changed_.wait_until(lock, deadline, is_free) || Clock::now() > deadline) {
        throw HttpError(503, "too many images are being decoded at a time");
      }
      memory_ = std::move(reader_.free_.back());
      reader_.free_.pop_back();
      reader_.decodes_large_ |= is_large_;
    }
    ~Turn() {
      if (is_large_) {
        *memory_ = {};
        give_back_freed_memory();  // other memory stays with the process, for tensors of the same sizes
      }
      {
        const std::lock_guard lock(reader_.mutex_);
        reader_.free_.push_back(std::move(memory_));  // there is room: it was taken out
        if (is_large_) reader_.decodes_large_ = false;
      }
      reader_.changed_.notify_all();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    TransformMemory& memory() { return *memory_; }

   private:
    ImageReader& reader_;
    bool is_large_;
    std::unique_ptr<TransformMemory> memory_{};
  };

  Transform transform_;
  DecodeOptions decode_;
  int64_t most_pixels_;
  std::mutex mutex_{};
  std::condition_variable changed_{};
  std::vector<std::unique_ptr<TransformMemory>> free_{};
  bool decodes_large_ = false;
};

// The number by which randomised rules draw: it looks random, and is the same whenever the images are.
int64_t number_of(std::span<const Upload> images) {
  Sha256 sha;
  for (const Upload& image : images) sha.add(image.bytes);
  return std::stoll(sha.hex().substr(0, 15), nullptr, 16);
}

// The scores of the mean log-probability of a specimen's images, [1, classes].
at::Tensor specimen_scores(const at::Tensor& scores, ProbabilityKind kind) {
  const at::Tensor logs = log_probabilities(scores, kind);
  GroupSum sum;
  for (int64_t i = 0; i < logs.size(0); ++i) sum.add(logs[i]);
  return sum.scores(kind);
}

nlohmann::ordered_json rules_as_json(const SetMaker& maker) {
  nlohmann::ordered_json rules = nlohmann::ordered_json::array();
  for (const CalibratedRule& rule : maker.rules()) {
    nlohmann::ordered_json entry{{"name", rule.rule.name()}, {"guarantee", nullptr}};
    if (is_guarantee(rule.guarantee)) {
      entry["guarantee"] = rule.guarantee;
    } else {
      entry["no_guarantee"] = rule.guarantee.substr(kNoGuarantee.size());
    }
    entry["notes"] = rule.notes;
    rules.push_back(std::move(entry));
  }
  return rules;
}

// Answers requests with a trained model.
class ModelService {
 public:
  // Throws what the model throws, see BatchScorer.
  ModelService(const TrainedModel& model, const SetMaker& maker, const std::vector<OfferedPlace>& places,
               const ServeOptions& options, ServiceMetrics& metrics)
      : model_(model),
        places_(places),
        anywhere_{maker, SetsAsJson(maker)},
        options_(options),
        metrics_(metrics),
        reader_(model, at::get_num_threads(), options.most_pixels),
        scorer_(model, reader_.black_image(), options.batch, metrics) {
    for (const OfferedPlace& place : places) at_place_.push_back({place.maker, SetsAsJson(place.maker)});
  }

  // The sets for one image, or for several of one specimen, as JSON (docs/serving.md). Thread-safe. The random numbers
  // of randomised rules are a function of the images' bytes, so the same images get the same answer. The query may name
  // a place. Throws HttpError.
  std::string answer(std::span<const Upload> images, std::string_view query) {
    const auto& [maker, as_json] = answers_at(query);
    const c10::InferenceMode inference;
    BatchScorer::Places places(scorer_, std::ssize(images));
    std::vector<at::Tensor> views;
    for (const Upload& image : images) views.push_back(reader_.read(image, places.deadline()));
    at::Tensor scores = places.score(std::move(views));
    if (images.size() > 1) scores = specimen_scores(scores, class_facts(model_.card).probability);
    const std::vector<PredictedSet> sets = maker(scores, number_of(images)).front();
    for (size_t i = 0; i < sets.size(); ++i) metrics_.add_set(maker.rule_names()[i], std::ssize(sets[i].members));
    return fmt::format("{{\"images\":{},\"sets\":{}}}\n", images.size(), as_json(sets));
  }

  // The model, its rules and the limits of a request, as JSON (docs/serving.md).
  std::string describe() const {
    const ModelCard& card = model_.card;
    nlohmann::ordered_json places = nlohmann::ordered_json::array();
    for (const OfferedPlace& place : places_) {
      places.push_back({{"kind", place.kind},
                        {"name", place.name},
                        {"notes", place.maker.place_notes()},
                        {"rules", rules_as_json(place.maker)}});
    }
    const BuildInfo build = build_info();
    nlohmann::ordered_json json{
        {"file", model_.file.filename().string()},
        {"data_set", card.dataset},
        {"model", model_.config.get<std::string>("model.name")},
        {"by", options_.by_superclass ? "superclass" : "class"},
        {"names", anywhere_.maker.names()},
        {"input", {{"height", card.input_height}, {"width", card.input_width}, {"channels", card.channels}}},
        {"probabilities", card.is_sigmoid ? "sigmoid" : "softmax"},
        {"temperature", model_.rules ? model_.rules->temperature : 1},
        {"calibrated_on", nullptr},
        {"rules", rules_as_json(anywhere_.maker)},
        {"places", std::move(places)},
        {"limits",
         {{"bytes", options_.http.bytes}, {"pixels", options_.most_pixels}, {"images", options_.http.images}}},
        {"version", fmt::format("{} ({})", build.version, build.git_commit)}};
    if (model_.rules) json["calibrated_on"] = model_.rules->calibrated_on;
    return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
  }

 private:
  struct Answers {
    const SetMaker& maker;
    SetsAsJson as_json;
  };

  // The sets of the place that "prior=NAME" or "only=NAME" in the query names; without them those of no place.
  const Answers& answers_at(std::string_view query) const {
    const Answers* found = nullptr;
    while (!query.empty()) {
      const std::string_view part = query.substr(0, query.find('&'));
      query.remove_prefix(std::min(query.size(), part.size() + 1));
      const size_t kind_end = std::min(part.find('='), part.size());
      const std::string kind = decoded_part(part.substr(0, kind_end)),
                        name = decoded_part(part.substr(std::min(part.size(), kind_end + 1)));
      if (part.empty()) continue;
      if (kind != "prior" && kind != "only") {
        throw HttpError(400,
                        fmt::format("there is no parameter {}: requests may have prior=NAME or only=NAME. Rules are "
                                    "chosen when `serve` starts; GET /model lists them",
                                    in_quotes(kind)));
      }
      if (found) throw HttpError(400, "a request has one place: prior=NAME or only=NAME");
      for (size_t i = 0; i < places_.size(); ++i) {
        if (places_[i].kind == kind && places_[i].name == name) found = &at_place_[i];
      }
      if (!found)
        throw HttpError(400, fmt::format("there is no place {}; GET /model names those there are", in_quotes(part)));
    }
    return found ? *found : anywhere_;
  }

  const TrainedModel& model_;
  const std::vector<OfferedPlace>& places_;
  Answers anywhere_;
  std::vector<Answers> at_place_{};  // [places_]
  ServeOptions options_;
  ServiceMetrics& metrics_;
  ImageReader reader_;
  BatchScorer scorer_;
};

}  // namespace

Server::Server(const ServeOptions& options) : options_(options) {
  for (const std::string& origin : options.origins) {
    if (origin == "*" && options.origins.size() > 1)
      throw ConfigError("--allow-origin: '*' is all origins, and stands alone");
    if (origin == "*" || is_origin(origin)) continue;
    throw ConfigError(fmt::format(
        "--allow-origin {}: an origin is written as browsers send it, a scheme, a host and a port that is not the "
        "scheme's own, in small letters and without a path: https://example.org, http://localhost:3000, or * for all",
        in_quotes(origin)));
  }
  socket_ = std::make_unique<ListeningSocket>(options.host, options.port);
}

Server::~Server() = default;

void Server::run(const TrainedModel& model, const SetMaker& maker, const std::vector<OfferedPlace>& places,
                 const std::function<void(int port)>& ready, const std::function<bool()>& stop) {
  share_arenas();
  ServiceMetrics metrics;
  ModelService service(model, maker, places, options_, metrics);
  HttpServer server({.page_html = serve_parts::page_html,
                     .page_css = serve_parts::page_css,
                     .page_js = serve_parts::page_js,
                     .model = service.describe(),
                     .predict = [&service](std::span<const Upload> images,
                                           std::string_view query) { return service.answer(images, query); },
                     .origins = options_.origins},
                    options_.http, metrics);
  socket_->listen();
  ready(socket_->port());
  server.run(*socket_, stop);
}

}  // namespace settrain
