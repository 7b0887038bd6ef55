// A whole file as a string.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace settrain::test {

/// The bytes of a file; empty where it cannot be read.
inline std::string read_file(const std::filesystem::path& file) {
  std::ifstream input(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(input), {}};
}

}  // namespace settrain::test
