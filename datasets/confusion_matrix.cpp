#include "datasets/confusion_matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <string>
#include <string_view>

#include "datasets/data_file_error.h"
#include "src/core/error.h"

namespace settrain {
namespace {

constexpr double kTolerance = 1e-6;  // of a row's sum: numbers are written with a few decimals
constexpr const char* kBlanks = " \t\r";

// The field at the front of `text`, which is then what follows it and the comma, if any.
std::string_view take_field(std::string_view& text) {
  const size_t end = text.find_first_of(" \t\r,");
  const std::string_view field = text.substr(0, end);
  text.remove_prefix(field.size());
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  if (text.starts_with(',')) {
    text.remove_prefix(1);
    text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  }
  return field;
}

// Appends the numbers of a line to `numbers`; what is wrong with it, or an empty text.
std::string read_row(std::string_view text, int64_t num_classes, std::vector<double>& numbers) {
  int64_t count = 0;
  double sum = 0;
  while (!text.empty()) {
    const std::string_view field = take_field(text);
    double number = 0;
    const auto [rest, error] = std::from_chars(field.data(), field.data() + field.size(), number);
    if (field.empty() || error != std::errc() || rest != field.data() + field.size() || !std::isfinite(number)) {
      return fmt::format("expected numbers with blanks or commas between them, got '{}'", field.substr(0, 40));
    }
    if (number < 0) return fmt::format("{} is no probability", number);
    if (++count > num_classes) break;
    sum += number;
    numbers.push_back(number);
  }
  if (count != num_classes) {
    return fmt::format("expected {} numbers, one a class, got {}", num_classes,
                       count > num_classes ? "more" : fmt::format("{}", count));
  }
  if (std::abs(sum - 1) > kTolerance) return fmt::format("the numbers add up to {:.9g}, expected 1", sum);
  return {};
}

}  // namespace

std::vector<double> read_confusion_matrix(const std::filesystem::path& file, int64_t num_classes) {
  std::ifstream stream(file);
  if (!stream) throw data_file_error("open", file);
  std::vector<double> numbers;
  int64_t rows = 0;
  std::string line;
  for (int64_t number = 1; std::getline(stream, line); ++number) {
    std::string_view text = std::string_view(line).substr(0, line.find('#'));
    text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
    if (text.empty()) continue;
    const std::string wrong = ++rows > num_classes
                                  ? fmt::format("a line too many; expected {}, one a class", num_classes)
                                  : read_row(text, num_classes, numbers);
    if (!wrong.empty()) throw DataError(fmt::format("{}:{}: {}", file.string(), number, wrong));
  }
  if (stream.bad()) throw data_file_error("read", file);
  if (rows < num_classes) {
    throw DataError(
        fmt::format("'{}' has {} lines of numbers, expected {}, one a class", file.string(), rows, num_classes));
  }
  return numbers;
}

}  // namespace settrain
