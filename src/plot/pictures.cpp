#include "src/plot/pictures.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <system_error>

#include "src/core/descriptor.h"
#include "src/core/error.h"
#include "src/core/log.h"
#include "src/plot/gnuplot.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;

constexpr std::array kPictures{".svg", ".png"};

// gnuplot does not notice a full disk.
void check_whole(const fs::path& picture) {
  std::ifstream file(picture, std::ios::binary);
  if (!file) return;  // what is not there is told by its name
  constexpr std::streamoff kEnd = 16;
  file.seekg(0, std::ios::end);
  file.seekg(-std::min<std::streamoff>(kEnd, file.tellg()), std::ios::end);
  const std::string end(std::istreambuf_iterator<char>(file), {});
  if (end.find("</svg>") == std::string::npos && end.find("IEND") == std::string::npos) {
    throw Error(fmt::format("gnuplot could not write all of a picture of {}; is the disk full?",
                            picture.parent_path().string()));
  }
}

}  // namespace

std::string picture_script(const PictureScript& script) {
  return fmt::format(
      R"(# {title}. Draws {name}.svg and {name}.png from {data}; run in their folder: gnuplot {name}.gp
data = '{data}'
if (!exists("out")) out = '{name}'
{settings}
do for [kind in "svg png"] {{
if (kind eq "svg") {{ set terminal svg size {width},{height} font 'DejaVu Sans,11' background 'white' standalone }}
if (kind eq "png") {{ set terminal pngcairo size {width},{height} font 'DejaVu Sans,9' background 'white' }}
set output out . '.' . kind
{commands}
set output
}}
)",
      fmt::arg("title", one_line(script.title)), fmt::arg("name", script.name),
      fmt::arg("data", script.name + script.data_ending), fmt::arg("settings", script.settings),
      fmt::arg("width", script.width), fmt::arg("height", script.height), fmt::arg("commands", script.commands));
}

std::string one_line(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return text;
}

std::string gnuplot_string(const std::string& text) {
  // In double quotes gnuplot runs what stands between backquotes, and nothing keeps it from that. In single quotes two
  // apostrophes are one, but neither at the beginning nor after another: there it ends the string.
  std::string quoted = "'";
  char before = '\'';
  for (const char c : one_line(text)) {
    if (c == '\'' && before == '\'') {
      quoted += "' . \"'\" . '";
    } else {
      quoted += c == '\'' ? std::string("''") : std::string(1, c);
    }
    before = c;
  }
  return quoted + "'";
}

void make_figure_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw file_error("create", folder, error.value());
  if (::access(folder.c_str(), W_OK | X_OK) != 0) throw file_error("write to", folder, errno);
}

void draw_pictures(const std::string& name, const fs::path& folder) {
  // Under other names first, so that a picture is whole or absent.
  const std::string temporary = fmt::format(".{}.tmp-{}", name, ::getpid());
  std::error_code error;
  try {
    const std::string warnings = run_gnuplot(folder, {"-e", "out='" + temporary + "'", name + ".gp"});
    if (!warnings.empty()) log::warning(fmt::format("[figure] {}: gnuplot says: {}", name, warnings));
    for (const char* ending : kPictures) check_whole(folder / (temporary + ending));
    for (const char* ending : kPictures) {
      fs::rename(folder / (temporary + ending), folder / (name + ending), error);
      if (error) throw file_error("write", folder / (name + ending), error.value());
    }
  } catch (const Error& problem) {
    for (const char* ending : kPictures) fs::remove(folder / (temporary + ending), error);
    throw Error(
        fmt::format("{}\n{} and the like were not drawn; the data and scripts are there: run `gnuplot {}.gp` in {}",
                    problem.what(), name + ".png", name, folder.string()));
  }
}

std::vector<fs::path> figure_files(const std::string& name, const fs::path& folder, const std::string& data_ending) {
  std::vector<fs::path> files;
  for (const std::string& ending : {std::string(".svg"), std::string(".png"), data_ending, std::string(".gp")}) {
    files.push_back(folder / (name + ending));
  }
  return files;
}

}  // namespace settrain
