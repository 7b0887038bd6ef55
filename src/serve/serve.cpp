#include "src/serve/serve.h"

#include <span>

#include "src/serve/http/http_server.h"
#include "src/serve/http/service_metrics.h"
#include "src/serve/model_service.h"
#include "src/serve/page_parts.h"

namespace settrain {

void serve(const TrainedModel& model, const SetMaker& maker, const ServeOptions& options,
           const std::function<void(int port)>& ready, const std::function<bool()>& stop) {
  ServiceMetrics metrics;
  ModelService service(model, maker, options, metrics);
  HttpServer server({.page_html = serve_parts::page_html,
                     .page_css = serve_parts::page_css,
                     .page_js = serve_parts::page_js,
                     .model = service.describe(),
                     .predict = [&service](std::span<const Upload> images) { return service.answer(images); }},
                    options.http, metrics);
  ready(server.bind(options.host, options.port));
  server.run(stop);
}

}  // namespace settrain
