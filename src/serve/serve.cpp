#include "src/serve/serve.h"

#include <span>

#include "src/core/process.h"
#include "src/serve/http/http_server.h"
#include "src/serve/http/listening_socket.h"
#include "src/serve/http/service_metrics.h"
#include "src/serve/model_service.h"
#include "src/serve/page_parts.h"

namespace settrain {

Server::Server(const ServeOptions& options)
    : options_(options), socket_(std::make_unique<ListeningSocket>(options.host, options.port)) {}

Server::~Server() = default;

void Server::run(const TrainedModel& model, const SetMaker& maker, const std::function<void(int port)>& ready,
                 const std::function<bool()>& stop) {
  share_arenas();
  ServiceMetrics metrics;
  ModelService service(model, maker, options_, metrics);
  HttpServer server({.page_html = serve_parts::page_html,
                     .page_css = serve_parts::page_css,
                     .page_js = serve_parts::page_js,
                     .model = service.describe(),
                     .predict = [&service](std::span<const Upload> images) { return service.answer(images); }},
                    options_.http, metrics);
  socket_->listen();
  ready(socket_->port());
  server.run(*socket_, stop);
}

}  // namespace settrain
