#include "src/data_tools/contact_sheet.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <stdexcept>

#include "datasets/file_bytes.h"
#include "src/core/files.h"
#include "src/core/scratch_folder.h"
#include "src/plot/pictures.h"

namespace settrain {
namespace {

// Pixels of the sheet.
constexpr int64_t kLeastSide = 128, kGap = 8, kLine = 13, kTitle = 20, kHeading = 26;
constexpr size_t kTitleCharacters = 120;

// Sizes in pixels, but for `scale` and `lines`.
struct SheetPlan {
  int64_t scale, cell_height, cell_width, lines, row_height, height, width;
};

SheetPlan plan_of(const std::vector<SheetRow>& rows) {
  if (rows.empty() || rows.front().cells.empty()) throw std::invalid_argument("contact sheet: no image");
  const Image& first = rows.front().cells.front().image;
  size_t lines = 0, columns = 0;
  for (const SheetRow& row : rows) {
    columns = std::max(columns, row.cells.size());
    for (const SheetCell& cell : row.cells) {
      lines = std::max(lines, cell.lines.size());
      if (cell.image.height != first.height || cell.image.width != first.width)
        throw std::invalid_argument("contact sheet: images of several sizes");
    }
  }
  SheetPlan plan{};
  plan.scale = (kLeastSide + first.width - 1) / first.width;
  plan.cell_height = plan.scale * first.height;
  plan.cell_width = plan.scale * first.width;
  plan.lines = static_cast<int64_t>(lines);
  plan.row_height = kTitle + plan.cell_height + plan.lines * kLine + kGap;
  plan.height = kHeading + std::ssize(rows) * plan.row_height;
  plan.width = kGap + static_cast<int64_t>(columns) * (plan.cell_width + kGap);
  return plan;
}

// The place of a cell's first pixel.
struct Place {
  int64_t top, left;
};

Place cell_place(const SheetPlan& plan, int64_t row, int64_t column) {
  return {kHeading + row * plan.row_height + kTitle, kGap + column * (plan.cell_width + kGap)};
}

// Copies the image, enlarged, into the sheet's RGB bytes.
void paste(const Image& image, const Place& place, const SheetPlan& plan, std::string& sheet) {
  for (int64_t y = 0; y < plan.cell_height; ++y) {
    for (int64_t x = 0; x < plan.cell_width; ++x) {
      const int64_t from = (y / plan.scale * image.width + x / plan.scale) * image.channels;
      for (int64_t c = 0; c < 3; ++c) {
        const int64_t channel = image.channels == 1 ? 0 : c;
        sheet[static_cast<size_t>(((place.top + y) * plan.width + place.left + x) * 3 + c)] =
            static_cast<char>(image.pixels[static_cast<size_t>(from + channel)]);
      }
    }
  }
}

std::string label_command(const std::string& text, int64_t x, int64_t y, const char* how) {
  return fmt::format("set label {} at {}, {} noenhanced front {}\n", gnuplot_string(one_line(text)), x, y, how);
}

std::string labels_of(const std::string& heading, const std::vector<SheetRow>& rows, const SheetPlan& plan) {
  std::string labels = label_command(heading, kGap, kHeading / 2, "left font ',11'");
  for (int64_t r = 0; r < std::ssize(rows); ++r) {
    const SheetRow& row = rows[static_cast<size_t>(r)];
    const Place first = cell_place(plan, r, 0);
    labels +=
        label_command(shortened(row.title, kTitleCharacters), first.left, first.top - kTitle / 2, "left font ',9'");
    for (int64_t c = 0; c < std::ssize(row.cells); ++c) {
      const auto [top, left] = cell_place(plan, r, c);
      int64_t y = top + plan.cell_height + kLine / 2;
      for (const std::string& line : row.cells[static_cast<size_t>(c)].lines) {
        labels += label_command(line, left + plan.cell_width / 2, y, "center font ',7'");
        y += kLine;
      }
    }
  }
  return labels;
}

}  // namespace

void draw_contact_sheet(const std::string& heading, const std::vector<SheetRow>& rows,
                        const std::filesystem::path& file) {
  const SheetPlan plan = plan_of(rows);
  std::string sheet(static_cast<size_t>(plan.height * plan.width * 3), '\xff');
  for (int64_t r = 0; r < std::ssize(rows); ++r) {
    const std::vector<SheetCell>& cells = rows[static_cast<size_t>(r)].cells;
    for (int64_t c = 0; c < std::ssize(cells); ++c)
      paste(cells[static_cast<size_t>(c)].image, cell_place(plan, r, c), plan, sheet);
  }
  const ScratchFolder scratch;
  write_file_atomically(scratch.path() / "sheet.rgb", sheet);
  write_file_atomically(scratch.path() / "sheet.gp",
                        fmt::format(R"(set terminal pngcairo size {width},{height} font 'DejaVu Sans' background 'white'
set output 'sheet.png'
set margins 0, 0, 0, 0
unset border
unset tics
unset key
set xrange [-0.5:{width} - 0.5]
set yrange [{height} - 0.5:-0.5]
{labels}plot 'sheet.rgb' binary array=({width},{height}) format='%uchar' using 1:2:3 with rgbimage
)",
                                    fmt::arg("width", plan.width), fmt::arg("height", plan.height),
                                    fmt::arg("labels", labels_of(heading, rows, plan))));
  run_gnuplot(scratch.path(), {"sheet.gp"});
  std::vector<uint8_t> memory;
  const std::span<const uint8_t> png = read_file_bytes(scratch.path() / "sheet.png", memory);
  write_file_atomically(file, {reinterpret_cast<const char*>(png.data()), png.size()});
}

}  // namespace settrain
