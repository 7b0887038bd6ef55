// An image of a data set, small enough to stand in a page.
#pragma once

#include <cstdint>
#include <string>

#include "datasets/dataset.h"

namespace settrain {

/// The whole image `id`, its longer side scaled to `side` pixels where it is longer, as 8-bit pixels. Throws DataError
/// where it cannot be read.
Image thumbnail(const ImageSource& images, int64_t id, int64_t side);

/// A PNG as a URI that holds the picture itself: "data:image/png;base64,...". Throws what encode_png() throws.
std::string picture_uri(const Image& image);

}  // namespace settrain
