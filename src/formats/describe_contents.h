// What a file of weights holds, as a table for people.
#pragma once

#include <string>

#include "src/formats/contents.h"

namespace settrain {

/// A line a tensor (name, type, shape, bytes, and with which one before it shares memory), then a line for every other
/// value and text of the metadata, cut where it is long.
std::string describe_contents(const Contents& contents);

}  // namespace settrain
