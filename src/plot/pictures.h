// Running gnuplot: from a script in a folder to an SVG and a PNG beside it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace settrain {

/// A picture's data and what draws them: `commands`, once for each kind of picture, after `settings`. The commands may
/// use `large` and `small`, fonts of these sizes beside the text's.
struct Picture {
  std::string name, title{};     // of the files NAME.gp, NAME.svg, ...; in the script's first line
  size_t width = 0, height = 0;  // pixels
  std::string settings = {}, commands = {};
  std::string data = {}, ending = ".dat";  // the file NAME.dat
};

/// The script NAME.gp, which draws NAME.svg and NAME.png, or, where `out` is set, OUT.svg and OUT.png.
std::string picture_script(const Picture& picture);

/// Makes the folder where it is not there. Throws RunError where it cannot be made or written to.
void make_figure_folder(const std::filesystem::path& folder);

/// Makes the folder, where it is not there. Writes data and scripts of so many pictures to it; then draws them. Gives
/// the files' paths: .svg, .png, the data, .gp of each. No picture is left half drawn. Throws Error, after all others
/// are drawn, saying that data and scripts are there, where gnuplot is missing or fails.
std::vector<std::filesystem::path> draw_pictures(size_t count, const std::function<Picture(size_t)>& picture,
                                                 const std::filesystem::path& folder);

}  // namespace settrain
