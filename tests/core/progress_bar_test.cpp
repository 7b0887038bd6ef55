#include "src/core/progress_bar.h"

#include <fcntl.h>
#include <unistd.h>

#include <limits>
#include <sstream>
#include <vector>

#include "src/core/log.h"
#include "tests/support/catch2.h"

using namespace settrain;
using Catch::Contains;

namespace {

// A screen, a log and a clock to look at and set.
struct Desk {
  std::ostringstream screen;
  std::vector<std::string> lines;
  double now = 100;
  int columns = 100;

  ProgressOutput terminal() {
    return {&screen, [this] { return columns; }, nullptr, [this] { return now; }};
  }
  ProgressOutput file() {
    return {nullptr, nullptr, [this](std::string_view line) { lines.emplace_back(line); }, [this] { return now; }};
  }
  // The text drawn since the last call.
  std::string drawn() {
    std::string text = screen.str();
    screen.str("");
    return text;
  }
};

Progress at(int64_t done) {
  return {"[train] epoch 1/3", done, 1000, 2000, "loss 2.500"};
}

}  // namespace

TEST_CASE("The bar shows stage, fraction, figures, speed and time of arrival") {
  Desk desk;
  ProgressBar bar(desk.terminal());
  bar.update(at(0));
  CHECK(desk.drawn() == "\r[train] epoch 1/3 [>                             ]   0%  loss 2.500\033[K");
  desk.now += 1;
  bar.update(at(100));
  // 2,900 images are left, 900 of this epoch and 2,000 of the next ones, at 100 a second.
  CHECK(desk.drawn() ==
        "\r[train] epoch 1/3 [===>                          ]  10%  loss 2.500  100 images/s  ETA 29s\033[K");
  desk.now += 9;
  bar.update({"[train] epoch 1/3", 1000, 1000, 2000, ""});
  CHECK(desk.drawn() == "\r[train] epoch 1/3 [==============================] 100%  100 images/s  ETA 20s\033[K");
}

TEST_CASE("Bytes are shown as bytes") {
  Desk desk;
  ProgressBar bar(desk.terminal());
  bar.update({.stage = "[fetch] a.zip", .done = 0, .total = 10 << 20, .figures = "", .bytes = true});
  desk.now += 1;
  bar.update({.stage = "[fetch] a.zip", .done = 2 << 20, .total = 10 << 20, .figures = "", .bytes = true});
  CHECK_THAT(desk.drawn(), Contains(" 20%  2.0 MiB/s  ETA 4s"));
}

TEST_CASE("The bar fits its terminal") {
  Desk desk;
  ProgressBar bar(desk.terminal());
  for (int columns = 0; columns <= 120; ++columns) {
    desk.columns = columns;
    desk.now += 1;
    bar.update(at(100 + columns));
    const std::string text = desk.drawn();
    CHECK(static_cast<int>(text.size()) - 4 <= std::max(columns - 1, 0));  // less \r and \033[K
    if (columns >= 72) CHECK_THAT(text, Contains("ETA"));
    if (columns >= 80) CHECK_THAT(text, Contains("["));
  }
}

TEST_CASE("A line is cut between characters, and its room is counted in them") {
  Desk desk;
  ProgressBar bar(desk.terminal());
  const std::string stage = "\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9";
  desk.columns = 5;
  bar.update({stage, 0, 10, 0, ""});
  CHECK(desk.drawn() == "\r" + stage.substr(0, 8) + "\033[K");
  desk.columns = 21;
  desk.now += 1;
  bar.update({stage, 0, 10, 0, ""});
  CHECK(desk.drawn() == "\r" + stage + " [>     ]   0%\033[K");
}

TEST_CASE("The bar is drawn at most ten times a second") {
  Desk desk;
  ProgressBar bar(desk.terminal());
  int drawn = 0;
  for (int i = 0; i < 1000; ++i) {
    desk.now += 0.001;
    bar.update(at(i));
    if (!desk.drawn().empty()) ++drawn;
  }
  CHECK(drawn >= 9);
  CHECK(drawn <= 11);
}

TEST_CASE("The speed forgets the distant past, pauses and the stage before") {
  Desk desk;
  ProgressBar bar(desk.terminal());
  Progress progress{"a", 0, 1'000'000, 0, ""};
  const auto advance = [&](double seconds, int64_t images) {
    desk.now += seconds;
    progress.done += images;
    bar.update(progress);
  };
  for (int i = 0; i < 100; ++i) advance(1, 50);
  desk.drawn();
  for (int i = 0; i < 150; ++i) advance(1, 200);
  CHECK_THAT(desk.drawn(), Contains("  200 images/s"));
  bar.hide();
  desk.now += 10'000;
  bar.update(progress);
  advance(1, 200);
  CHECK_THAT(desk.drawn(), Contains("  200 images/s"));
  progress.stage = "b";
  progress.done = 0;
  advance(1, 0);
  CHECK_THAT(desk.drawn(), !Contains("images/s"));
  advance(1, 70);
  CHECK_THAT(desk.drawn(), Contains("  70 images/s"));
}

TEST_CASE("Hiding takes the bar off the screen, and so does the end") {
  Desk desk;
  {
    ProgressBar bar(desk.terminal());
    bar.hide();
    CHECK(desk.drawn().empty());
    bar.update(at(0));
    desk.drawn();
    bar.hide();
    CHECK(desk.drawn() == "\r\033[K");
    desk.now += 1;
    bar.update(at(10));
    desk.drawn();
  }
  CHECK(desk.drawn() == "\r\033[K");
}

TEST_CASE("A log line goes above the bar") {
  Desk desk;
  const int saved = ::dup(STDERR_FILENO);
  ::dup2(::open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
  {
    ProgressBar bar(desk.terminal());
    bar.update(at(0));
    const std::string picture = desk.drawn();
    log::info("line");
    CHECK(desk.drawn() == "\r\033[K" + picture);
  }
  desk.drawn();
  log::info("line");
  ::dup2(saved, STDERR_FILENO);
  ::close(saved);
  CHECK(desk.drawn().empty());
}

TEST_CASE("Without a terminal there is a line every ten seconds, and no bar") {
  Desk desk;
  {
    ProgressBar bar(desk.file());
    for (int second = 0; second < 60; ++second) {
      bar.update(at(10 * second));
      desk.now += 1;
    }
  }
  REQUIRE(desk.lines.size() == 5);
  CHECK(desk.lines[0] == "[train] epoch 1/3  10%  loss 2.500  10 images/s  ETA 4m 50s");
}

TEST_CASE("Progress of nothing and beyond the end is drawn without harm") {
  Desk desk;
  ProgressBar bar(desk.terminal());
  bar.update({"a", 0, 0, 0, ""});
  CHECK_THAT(desk.drawn(), Contains("0%"));
  desk.now += 1;
  bar.update({"a", 30, 20, 0, ""});
  CHECK_THAT(desk.drawn(), Contains("[==============================] 150%"));
}
