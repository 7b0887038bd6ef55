// From a gnuplot script in a folder to an SVG and a PNG beside it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace settrain {

/// What a script draws: `commands` once for each kind of picture, after `settings`.
struct PictureScript {
  std::string name;                          // of the files: NAME.gp, NAME.dat, ...
  std::string title;                         // in the script's first line
  uint64_t width = 0, height = 0;            // pixels
  std::string settings = {}, commands = {};  // `data` is the data file's name
  std::string data_ending = ".dat";
};

/// The script NAME.gp, which draws NAME.svg and NAME.png from NAME.dat (or another ending), or, where `out` is set,
/// OUT.svg and OUT.png.
std::string picture_script(const PictureScript& script);

/// `text` with blanks for control characters, line breaks among them.
std::string one_line(std::string text);

/// `text` on one line as a string of gnuplot's, in single quotes; to be drawn `noenhanced`.
std::string gnuplot_string(const std::string& text);

/// Makes the folder where it is not there. Throws RunError where it cannot be made or written to.
void make_figure_folder(const std::filesystem::path& folder);

/// Runs NAME.gp in the folder. Throws Error, saying that data and scripts are there, where gnuplot is missing or fails.
/// No picture is left half drawn.
void draw_pictures(const std::string& name, const std::filesystem::path& folder);

/// The paths of a figure's four files: .svg, .png, .dat (or another ending) and .gp.
std::vector<std::filesystem::path> figure_files(const std::string& name, const std::filesystem::path& folder,
                                                const std::string& data_ending = ".dat");

}  // namespace settrain
