#include "src/studies/sweep/status_board.h"

#include <algorithm>
#include <chrono>
#include <iostream>

#include "src/core/process.h"
#include "src/core/text.h"

namespace settrain {
namespace {

constexpr double kPause = 0.5;  // seconds between two drawings

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

StatusBoard::StatusBoard() : is_terminal_(stderr_is_terminal()), start_(seconds_now()), last_(start_ - kPause) {}

double StatusBoard::seconds() const {
  return seconds_now() - start_;
}

bool StatusBoard::is_due() const {
  return is_terminal_ && seconds_now() - last_ >= kPause;
}

void StatusBoard::draw(const std::vector<std::string>& lines) {
  erase();
  const auto width = static_cast<size_t>(std::max(20, terminal_columns() - 1));
  for (const std::string& line : lines) std::cerr << first_characters(line, width) << '\n';
  std::cerr.flush();
  drawn_ = lines.size();
  last_ = seconds_now();
}

void StatusBoard::erase() {
  for (; drawn_ > 0; --drawn_) std::cerr << "\x1b[A\r\x1b[K";
  std::cerr.flush();
}

}  // namespace settrain
