// The photographs of a request.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace settrain {

struct Upload {
  std::string name;        // for messages: the file's, or "image 2"
  std::string_view bytes;  // of the image file, not empty
};

/// What a body holds: one image; or, of the type multipart/form-data (RFC 7578), one in every part, whatever the
/// fields' names. The bytes lie in `body`. Throws HttpError 400 where it is empty, no such form, or a part is empty,
/// and 413 where there are more than `most` images.
std::vector<Upload> find_uploads(std::string_view body, std::string_view content_type, int64_t most);

}  // namespace settrain
