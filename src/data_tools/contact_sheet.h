// A picture of many small images with words below them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "datasets/decoding/image.h"

namespace settrain {

/// An image of 1 or 3 channels with words below it.
struct SheetCell {
  Image image;
  std::vector<std::string> lines{};
};

/// Cells side by side, below a title.
struct SheetRow {
  std::string title;
  std::vector<SheetCell> cells{};
};

/// Draws the rows as a PNG at `file`, with `heading` above them. All images have one size; small ones are enlarged by a
/// whole number. Throws Error where gnuplot, which writes the words, is missing or fails, RunError where the file
/// cannot be written, and std::invalid_argument where there is no image or their sizes differ.
void draw_contact_sheet(const std::string& heading, const std::vector<SheetRow>& rows,
                        const std::filesystem::path& file);

}  // namespace settrain
