// Files that Python's torch.save wrote.
#pragma once

#include "src/formats/contents.h"
#include "src/formats/input_file.h"

namespace settrain {

/// The contents of a zip archive, as PyTorch writes since 1.6. Nothing in the file is trusted, and nothing that it asks
/// for is run. Throws RunError that says what is wrong.
Contents zip_contents(const InputFile& file);

/// The contents of the format before that: pickles one after another, then the storages. As above.
Contents legacy_contents(const InputFile& file);

}  // namespace settrain
