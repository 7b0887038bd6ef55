#include "src/plot/pictures.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>

#include "src/core/child_process.h"
#include "src/core/error.h"
#include "src/core/files.h"
#include "src/core/log.h"
#include "src/core/table_text.h"
#include "src/core/text.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostOfTic = 28;  // characters of a tic's label

constexpr std::array kPictures{".svg", ".png"};

// gnuplot does not notice a full disk.
void check_whole(const fs::path& picture) {
  std::ifstream file(picture, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  if (!file.is_open() || bytes.find("</svg>") != std::string::npos || bytes.find("IEND") != std::string::npos) return;
  throw Error(
      fmt::format("gnuplot could not write all of a picture of {}; is the disk full?", picture.parent_path().string()));
}

void draw_picture(const fs::path& folder, const std::string& name) {
  // Under other names first, so that a picture is whole or absent.
  const std::string temporary = fmt::format(".{}.tmp-{}", name, ::getpid());
  std::error_code error;
  try {
    const std::string warnings = run_gnuplot(folder, {"-e", "out='" + temporary + "'", "./" + name + ".gp"});
    if (!warnings.empty()) log::warning(fmt::format("[figure] {}: gnuplot says: {}", name, warnings));
    for (const char* ending : kPictures) check_whole(folder / (temporary + ending));
    for (const char* ending : kPictures) {
      fs::rename(folder / (temporary + ending), folder / (name + ending), error);
      if (error) throw file_error("write", folder / (name + ending), error.value());
    }
  } catch (const Error& problem) {
    for (const char* ending : kPictures) fs::remove(folder / (temporary + ending), error);
    throw Error(fmt::format(
        "{0}\n{1}.svg and {1}.png were not drawn; the data and scripts are there: run `gnuplot {1}.gp` in {2}",
        problem.what(), name, folder.string()));
  }
}

}  // namespace

std::string one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
  return text;
}

std::string gnuplot_string(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    // As numbers: characters that end the string or mean something to gnuplot, or to its search for a block's end.
    const bool is_code =
        static_cast<unsigned char>(c) < 0x20 || std::string_view("\"'\\`{}#\x7f").find(c) != std::string_view::npos;
    quoted += is_code ? fmt::format("\\{:03o}", c) : std::string(1, c);
  }
  return quoted + '"';
}

std::string tic_string(const std::string& text) {
  std::string format;
  for (const char c : shortened(one_line(text), kMostOfTic)) format += c == '%' ? std::string("%%") : std::string(1, c);
  return gnuplot_string(format);
}

std::string shortened(const std::string& text, size_t characters) {
  return count_characters(text) <= characters ? text : first_characters(text, characters) + "\u2026";
}

std::string wrapped(const std::string& text, size_t characters) {
  std::string lines = wrap_words(one_line(text), characters, 0);
  if (!lines.empty()) lines.pop_back();  // the last line's end
  return lines;
}

namespace fs = std::filesystem;

std::string run_gnuplot(const fs::path& folder, const std::vector<std::string>& arguments) {
  if (!fs::is_directory(folder)) throw file_error("open", folder, ENOENT);
  std::vector<std::string> command{"gnuplot", "-d"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  const ChildEnd end = run_child({.command = command, .package = "gnuplot-nox", .folder = folder});
  if (end.code == 0) return end.printed;
  const std::string how = end.code > 128 ? fmt::format("was ended by signal {}", end.code - 128)
                                         : fmt::format("failed with exit code {}", end.code);
  throw Error(fmt::format("gnuplot {}{}", how, end.printed.empty() ? "" : ":\n" + end.printed));
}

// Sizes of letters are in pixels in an SVG, in points in a PNG.
std::string picture_script(const Picture& picture) {
  return fmt::format(
      R"(# {title}. Draws {name}.svg and {name}.png; run in their folder: gnuplot {name}.gp
if (!exists("out")) out = '{name}'
{settings}
do for [kind in "svg png"] {{
if (kind eq "svg") {{ set terminal svg size {width},{height} font 'DejaVu Sans,11' background 'white' standalone }}
if (kind eq "png") {{ set terminal pngcairo size {width},{height} font 'DejaVu Sans,9' background 'white' }}
large = kind eq "svg" ? ',14' : ',11'
small = kind eq "svg" ? ',10' : ',8'
set output out . '.' . kind
{commands}
set output
}}
)",
      fmt::arg("title", one_line(picture.title)), fmt::arg("name", picture.name),
      fmt::arg("settings", picture.settings), fmt::arg("width", picture.width), fmt::arg("height", picture.height),
      fmt::arg("commands", picture.commands));
}

void make_figure_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw file_error("create", folder, error.value());
  if (::access(folder.c_str(), W_OK | X_OK) != 0) throw file_error("write to", folder, errno);
}

std::vector<fs::path> draw_pictures(size_t count, const std::function<Picture(size_t)>& picture,
                                    const fs::path& folder) {
  make_figure_folder(folder);
  std::vector<fs::path> files;
  std::vector<std::string> names;
  for (size_t i = 0; i < count; ++i) {
    const Picture made = picture(i);
    names.push_back(made.name);
    for (const std::string& ending : {std::string(".svg"), std::string(".png"), made.ending, std::string(".gp")}) {
      files.push_back(folder / (made.name + ending));
    }
    write_file_atomically(folder / (made.name + made.ending), made.data);
    write_file_atomically(folder / (made.name + ".gp"), picture_script(made));
  }
  std::string problems;
  for (const std::string& name : names) {
    try {
      draw_picture(folder, name);
    } catch (const Error& problem) {
      problems += (problems.empty() ? "" : "\n") + std::string(problem.what());
    }
  }
  if (!problems.empty()) throw Error(problems);
  return files;
}

}  // namespace settrain
