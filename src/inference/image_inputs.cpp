#include "src/inference/image_inputs.h"

#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "datasets/find_images.h"
#include "datasets/image_list.h"
#include "src/core/error.h"
#include "src/core/interrupt.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;

std::string not_an_input(const std::string& input, const char* what) {
  return fmt::format("'{}' is {}: expected an image ({}), a folder, a text file that lists images, or -", input, what,
                     kImageEndings);
}

void add_folder(const fs::path& folder, FileTable& files) {
  FileTable found(folder);
  find_images("", found);
  if (found.size() == 0) {
    throw DataError(fmt::format("no {} file in '{}' or the folders in it", kImageEndings, folder.string()));
  }
  for (int64_t i = 0; i < found.size(); ++i) files.add(found.path(i).native());
}

void add_list(std::istream& lines, const fs::path& folder, const std::string& name, FileTable& files) {
  const int64_t before = files.size();
  for (std::string line; std::getline(lines, line);) {
    throw_if_interrupted();
    if (files.size() == before && line.starts_with(kByteOrderMark)) line.erase(0, std::strlen(kByteOrderMark));
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty()) continue;
    if (line.find('\0') != std::string::npos) {
      throw DataError(not_an_input(name, "neither an image nor text"));
    }
    files.add((folder / line).native());
  }
  if (files.size() == before) throw DataError(fmt::format("the list '{}' names no image", name));
}

void add_list_file(const std::string& input, FileTable& files) {
  std::ifstream lines(input, std::ios::binary);
  if (!fs::exists(input)) throw DataError(not_an_input(input, "not there"));
  if (!lines) throw DataError(fmt::format("cannot read the list '{}'", input));
  add_list(lines, fs::path(input).parent_path(), input, files);
}

}  // namespace

FileTable image_inputs(const std::vector<std::string>& inputs, std::istream& standard_input) {
  FileTable files;
  for (const std::string& input : inputs) {
    std::error_code error;
    if (input == "-") {
      add_list(standard_input, {}, "-", files);
    } else if (fs::is_directory(input, error)) {
      add_folder(input, files);
    } else if (is_image(input)) {
      files.add(input);
    } else {
      add_list_file(input, files);
    }
  }
  files.shrink_to_fit();
  return files;
}

}  // namespace settrain
