#include "src/plot/pictures.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <system_error>

#include "src/core/error.h"
#include "src/core/files.h"
#include "src/core/log.h"
#include "src/plot/gnuplot.h"
#include "src/plot/picture_text.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;

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
