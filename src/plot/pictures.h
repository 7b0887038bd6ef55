// Pictures by gnuplot: texts in its scripts, running it, and from a script in a folder to an SVG and a PNG beside it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace settrain {

/// `text` with blanks for control characters, line breaks among them.
std::string one_line(std::string text);

/// `text` as a string of gnuplot's, whatever it holds, for texts that are drawn `noenhanced`.
std::string gnuplot_string(const std::string& text);

/// The same for the label of a tic, in which % stands for the tic's number; long ones are cut.
std::string tic_string(const std::string& text);

/// The text, or its first characters and an ellipsis.
std::string shortened(const std::string& text, size_t characters);

/// The text with line breaks at blanks, so that a line has at most `characters`; a longer word has a line of its
/// own.
std::string wrapped(const std::string& text, size_t characters);

/// Runs `gnuplot ARGUMENTS...` in `folder`, without a shell and without the user's initialisation files, and waits for
/// it. Gives what it printed: warnings. Throws Error where PATH has no gnuplot (naming Debian's package), where it
/// cannot be started, or where it fails (with what it printed).
std::string run_gnuplot(const std::filesystem::path& folder, const std::vector<std::string>& arguments);

/// A picture's data and the commands that draw them: `commands`, once for each kind of picture, after `settings`. The
/// commands may use `large` and `small`, fonts of these sizes beside the text's.
struct Picture {
  std::string name, title{};     // `name`: of the files NAME.gp, NAME.svg, ...; `title`: in the script's first line
  size_t width = 0, height = 0;  // pixels
  std::string settings = {}, commands = {};
  std::string data = {}, ending = ".dat";  // the file NAME.dat
};

/// The script NAME.gp, which draws NAME.svg and NAME.png, or, where `out` is set, OUT.svg and OUT.png.
std::string picture_script(const Picture& picture);

/// Makes the folder where it is not there. Throws RunError where it cannot be made or written to.
void make_figure_folder(const std::filesystem::path& folder);

/// Makes the folder, where it is not there. Writes data and scripts of `count` pictures to it, then draws them. Gives
/// the files' paths: .svg, .png, the data, .gp of each. No picture is left half drawn. Throws Error, after all others
/// are drawn, saying that data and scripts are there, where gnuplot is missing or fails.
std::vector<std::filesystem::path> draw_pictures(size_t count, const std::function<Picture(size_t)>& picture,
                                                 const std::filesystem::path& folder);

}  // namespace settrain
