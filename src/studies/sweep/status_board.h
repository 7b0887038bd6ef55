// Lines at the bottom of a terminal that are drawn over and over.
#pragma once

#include <string>
#include <vector>

namespace settrain {

/// Draws on standard error where that is a terminal; elsewhere nothing.
class StatusBoard {
 public:
  StatusBoard();
  StatusBoard(const StatusBoard&) = delete;
  StatusBoard& operator=(const StatusBoard&) = delete;
  ~StatusBoard() { erase(); }

  /// Seconds since it was made.
  double seconds() const;

  /// Whether there is a terminal and the last drawing is half a second old.
  bool is_due() const;

  /// In the place of what was drawn before, each line cut to the terminal's width.
  void draw(const std::vector<std::string>& lines);

  /// Takes them off, so that something else can be written.
  void erase();

 private:
  bool is_terminal_;
  double start_, last_;
  size_t drawn_ = 0;  // lines
};

}  // namespace settrain
