#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "apps/settrain/served_model.h"
#include "metrics/sets/rules/rule_terms.h"
#include "metrics/sets/rules/stored_rules.h"
#include "src/core/error.h"
#include "src/core/interrupt.h"
#include "src/core/log.h"
#include "src/core/text.h"
#include "src/serve/serve.h"

namespace settrain {
namespace {

struct ServeArguments {
  ServedModel served;
  std::vector<std::string> lists;  // --offer NAME=FILE
  ServeOptions options;
  double mebibytes = static_cast<double>(options.http.bytes) / (1 << 20);
  double megapixels = static_cast<double>(options.most_pixels) / 1e6;
};

bool is_loopback(const std::string& host) {
  in_addr address{};
  if (::inet_pton(AF_INET, host.c_str(), &address) == 1) return ntohl(address.s_addr) >> 24 == 127;
  return host == "localhost" || host == "::1";
}

// The rules that the place can answer by; all rules where it has none.
std::vector<std::string> answerable(const CalibratedPlace& place, const std::vector<std::string>& rules) {
  std::vector<std::string> known;
  for (const std::string& name : rules) {
    const SetRule rule = parse_set_rule(name);
    if (!needs_images(rule) || std::ranges::count(place.rules, rule, &CalibratedRule::rule) > 0) {
      known.push_back(name);
    } else {
      log::warning(printable(fmt::format("[serve] the place {} has no {}, and answers without it", place.name, name)));
    }
  }
  return known.empty() ? rules : known;
}

// The places that requests may name: those that rules were calibrated for, and the lists of --offer.
std::vector<OfferedPlace> offered_places(const ServeArguments& arguments, const TrainedModel& model) {
  const ServedModel& served = arguments.served;
  std::vector<OfferedPlace> places;
  const bool is_fixed = !served.form.only.empty() || !served.form.prior.empty();
  if (is_fixed && !arguments.lists.empty())
    throw ConfigError("--offer: requests choose a place, and --only or --prior gives all of them the same");
  if (is_fixed || served.form.by_superclass) return places;
  const auto add = [&](const char* kind, const std::string& name, const std::vector<std::string>& rules,
                       const std::string& what, std::string AnswerForm::*key) {
    AnswerForm form = served.form;
    form.*key = what;
    try {
      places.push_back({kind, name, SetMaker(model, rules, form)});
    } catch (const ConfigError& problem) {
      log::warning(printable(fmt::format("[serve] the place {} is left out: {}", name, problem.what())));
    }
  };
  if (model.rules) {
    for (const CalibratedPlace& place : model.rules->places) {
      add("prior", place.name, answerable(place, served.rules), place.name, &AnswerForm::prior);
    }
  }
  for (const std::string& text : arguments.lists) {
    const auto [name, file] = named_file("--offer", text, "FILE");
    if (std::ranges::count_if(places, [&, &wanted = name](const auto& place) {
          return place.kind == "only" && place.name == wanted;
        }) > 0)
      throw ConfigError(fmt::format("--offer: two lists are called {}", name));
    add("only", name, served.rules, file, &AnswerForm::only);
  }
  return places;
}

int serve_model(const CommandLine& line, ServeArguments& arguments) {
  catch_interrupts();
  ServeOptions& options = arguments.options;
  options.by_superclass = arguments.served.form.by_superclass;
  options.http.bytes = static_cast<int64_t>(arguments.mebibytes * (1 << 20));
  options.most_pixels = static_cast<int64_t>(arguments.megapixels * 1e6);
  options.batch.seconds = options.http.seconds;
  if (options.host.empty()) throw ConfigError("--host is empty: 127.0.0.1 is this machine, 0.0.0.0 all its addresses");
  if (options.batch.most_waiting < options.http.images) {
    throw ConfigError(fmt::format("--queue {}: the {} images of one request (--images) would never find room",
                                  options.batch.most_waiting, options.http.images));
  }
  Server server(options);  // before the model is loaded, which may take a while
  const TrainedModel model = arguments.served.open_to_answer(line, arguments.served.file(line));
  const SetMaker maker = arguments.served.set_maker(model);
  arguments.served.tell_rules("[serve]", model, maker);
  const std::vector<OfferedPlace> places = offered_places(arguments, model);
  for (const OfferedPlace& place : places) {
    log::info(fmt::format("[serve] requests may name {}={}", place.kind, place.name));
    for (const std::string& note : place.maker.place_notes()) log::info(printable("[serve] " + note));
  }
  const auto ready = [&](int port) {
    if (!is_loopback(options.host)) {
      log::warning(fmt::format("[serve] {}: others than this machine can ask; there is no encryption and no password",
                               options.host));
    }
    const bool is_ipv6 = options.host.find(':') != std::string::npos;
    std::cout << fmt::format("Serving '{}' at http://{}:{}\n", model.file.string(),
                             is_ipv6 ? '[' + options.host + ']' : options.host, port)
              << std::flush;
  };
  server.run(model, maker, places, ready, [] { return interrupted() != 0; });
  throw_if_interrupted();
  return kSuccess;
}

}  // namespace

void add_serve_command(CLI::App& app, CommandLine& line) {
  const auto [command, arguments] = add_subcommand<ServeArguments>(
      app, line, "serve", serve_model,
      "Answers with sets of classes over HTTP, and on a page for photographs; Ctrl-C or SIGTERM ends it");
  ServeOptions& options = arguments->options;
  arguments->served.add_model(*command);
  command->add_option("--host", options.host, "The address to listen at; 0.0.0.0 for all of this machine's")
      ->capture_default_str();
  command->add_option("--port", options.port, "0: any free one")->check(CLI::Range(0, 65535))->capture_default_str();
  arguments->served.add_options(*command, line);
  // No pictures follow, as in predict.
  CLI::Option* rule = command->get_option("--rule")->allow_extra_args();
  rule->description(rule->get_description() + ". Several may follow one --rule; MODEL stands before it then");
  command
      ->add_option(
          "--offer", arguments->lists,
          "NAME=FILE: a list of classes as --only takes it, which a request may name by only=NAME; may be given "
          "several times. Places of `settrain calibrate --prior` are offered as prior=NAME")
      ->allow_extra_args(false);
  add_integer(*command, "--batch", options.batch.most_images, 1, 4096,
              "The most images that the model scores together");
  command
      ->add_option("--window", options.batch.window_ms,
                   "Milliseconds for which an image waits for others that have arrived and are being decoded")
      ->check(number_between(0.0, 10'000.0))
      ->capture_default_str();
  add_integer(*command, "--queue", options.batch.most_waiting, 1, 1'000'000,
              "The most images that wait for the model; more are refused (503)");
  add_integer(*command, "--connections", options.http.connections, 1, 900, "The most connections at a time");
  add_integer(*command, "--images", options.http.images, 1, 1024, "The most images of a request");
  command->add_option("--mebibytes", arguments->mebibytes, "The most bytes of a request, in MiB (413)")
      ->check(number_between(0.001, 1024.0))
      ->capture_default_str();
  command->add_option("--megapixels", arguments->megapixels, "The most pixels of an image, in millions (413)")
      ->check(number_between(0.001, 178.0))
      ->capture_default_str();
  command
      ->add_option("--timeout", options.http.seconds,
                   "Seconds for a request to arrive (408), and then to reach the model (503)")
      ->check(number_between(0.1, 3600.0))
      ->capture_default_str();
  command
      ->add_option("--idle", options.http.idle_seconds,
                   "Seconds for which a connection stays open between two requests; behind a proxy more than the "
                   "proxy's own")
      ->check(number_between(0.1, 86'400.0))
      ->capture_default_str();
  command
      ->add_option("--allow-origin", options.origins,
                   "An origin whose pages may ask and read the answers (CORS), such as https://example.org, or * for "
                   "all; may be given several times")
      ->type_name("ORIGIN")
      ->allow_extra_args(false);
}

}  // namespace settrain
