#include <arpa/inet.h>
#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <memory>

#include "apps/settrain/answering_model.h"
#include "apps/settrain/command_line.h"
#include "src/core/error.h"
#include "src/core/interrupt.h"
#include "src/core/log.h"
#include "src/serve/serve.h"

namespace settrain {
namespace {

struct ServeArguments {
  AnsweringModel answering;
  ServeOptions options;
  double mebibytes = static_cast<double>(options.http.bytes) / (1 << 20);
  double megapixels = static_cast<double>(options.most_pixels) / 1e6;
};

bool is_loopback(const std::string& host) {
  in_addr address{};
  if (::inet_pton(AF_INET, host.c_str(), &address) == 1) return ntohl(address.s_addr) >> 24 == 127;
  return host == "localhost" || host == "::1";
}

int serve_model(const CommandLine& line, ServeArguments& arguments) {
  catch_interrupts();
  ServeOptions& options = arguments.options;
  options.by = arguments.answering.by;
  options.http.bytes = static_cast<int64_t>(arguments.mebibytes * (1 << 20));
  options.most_pixels = static_cast<int64_t>(arguments.megapixels * 1e6);
  options.batch.seconds = options.http.seconds;
  if (options.host.empty()) throw ConfigError("--host is empty: 127.0.0.1 is this machine, 0.0.0.0 all its addresses");
  if (options.batch.most_waiting < options.http.images) {
    throw ConfigError(fmt::format("--queue {}: the {} images of one request (--images) would never find room",
                                  options.batch.most_waiting, options.http.images));
  }
  Server server(options);  // before the model is loaded, which may take a while
  const TrainedModel model = arguments.answering.open(line, arguments.answering.file(line));
  const SetMaker maker = arguments.answering.set_maker(model);
  arguments.answering.tell_rules("[serve]", model, maker);
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
  server.run(model, maker, ready, [] { return interrupted() != 0; });
  throw_if_interrupted();
  return kSuccess;
}

}  // namespace

void add_serve_command(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand(
      "serve", "Answers with sets of classes over HTTP, and on a page for photographs; Ctrl-C or SIGTERM ends it");
  const auto arguments = std::make_shared<ServeArguments>();
  ServeOptions& options = arguments->options;
  arguments->answering.add_model(*command);
  command->add_option("--host", options.host, "The address to listen at; 0.0.0.0 for all of this machine's")
      ->capture_default_str();
  command->add_option("--port", options.port, "0: any free one")->check(CLI::Range(0, 65535))->capture_default_str();
  arguments->answering.add_options(*command, line);
  command->add_option("--batch", options.batch.most_images, "The most images that the model scores together")
      ->check(CLI::Range(int64_t{1}, int64_t{4096}))
      ->capture_default_str();
  command
      ->add_option("--window", options.batch.window_ms,
                   "Milliseconds for which an image waits for others that have arrived and are being decoded")
      ->check(number_between(0.0, 10'000.0))
      ->capture_default_str();
  command
      ->add_option("--queue", options.batch.most_waiting,
                   "The most images that wait for the model; more are refused (503)")
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000}))
      ->capture_default_str();
  command->add_option("--connections", options.http.connections, "The most connections at a time")
      ->check(CLI::Range(int64_t{1}, int64_t{900}))
      ->capture_default_str();
  command->add_option("--images", options.http.images, "The most images of a request")
      ->check(CLI::Range(int64_t{1}, int64_t{1024}))
      ->capture_default_str();
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
  command->callback([&line, arguments] { line.action = [&line, arguments] { return serve_model(line, *arguments); }; });
}

}  // namespace settrain
