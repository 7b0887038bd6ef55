// What the server answers with.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "src/serve/http/upload.h"

namespace settrain {

struct HttpAnswers {
  std::string_view page_html, page_css, page_js;                         // GET / and the files it asks for
  std::string model;                                                     // GET /model: JSON
  std::function<std::string(std::span<const Upload> images)> predict{};  // POST /predict: JSON; throws HttpError;
                                                                         // called by several threads at a time
};

}  // namespace settrain
