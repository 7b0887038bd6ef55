#include "src/config/value.h"

#include <limits>

#include "src/config/key.h"
#include "src/config/load.h"
#include "tests/config/sample.h"
#include "tests/support/catch2.h"

namespace settrain::config::test {
namespace {

bool to_bool(const std::string& text, bool quoted = false) {
  return std::get<bool>(to_value(free_key("b", false), text, quoted));
}

int64_t to_integer(const std::string& text, const Key& key, bool quoted = false) {
  return std::get<int64_t>(to_value(key, text, quoted));
}

double to_real(const std::string& text, bool quoted = false) {
  return std::get<double>(to_value(free_key("x", 0.0), text, quoted));
}

}  // namespace

TEST_CASE("booleans are true and false") {
  CHECK(to_bool("true"));
  CHECK_FALSE(to_bool("false"));
  CHECK_THROWS_WITH(to_bool("yes"), "'yes' is not a boolean, write true");
  CHECK_THROWS_WITH(to_bool("On"), "'On' is not a boolean, write true");
  CHECK_THROWS_WITH(to_bool("off"), "'off' is not a boolean, write false");
  CHECK_THROWS_WITH(to_bool("no"), "'no' is not a boolean, write false");
  CHECK_THROWS_WITH(to_bool("2"), "'2' is not a boolean, write true or false");
  CHECK_THROWS_WITH(to_bool("true", true), "'true' in quotes is text, not a boolean; remove the quotes");
}

TEST_CASE("integers are decimal and whole") {
  const Key plain = free_key("k", int64_t{0});
  CHECK(to_integer("0", plain) == 0);
  CHECK(to_integer("-0", plain) == 0);
  CHECK(to_integer("+17", plain) == 17);
  CHECK(to_integer("-9223372036854775808", plain) == std::numeric_limits<int64_t>::min());
  CHECK_THROWS_WITH(to_integer("9223372036854775808", plain), "'9223372036854775808' does not fit in 64 bits");
  CHECK_THROWS_WITH(to_integer("1e3", plain), "'1e3' is not an integer, write 1000");
  CHECK_THROWS_WITH(to_integer("5.0", plain), "'5.0' is not an integer, write 5");
  CHECK_THROWS_WITH(to_integer("007", plain), "'007' is not an integer, write 7");
  CHECK_THROWS_WITH(to_integer("2.5", plain), "'2.5' is not an integer");
  CHECK_THROWS_WITH(to_integer("1e300", plain), "'1e300' is not an integer");
  for (const char* text : {"", "+", "-", "--1", "+-1", "0x10", "1_000", " 1", "1 ", "1,5", "e3", "."}) {
    CHECK_THROWS_WITH(to_integer(text, plain), "'" + std::string(text) + "' is not an integer");
  }
  CHECK_THROWS_WITH(to_integer("5", plain, true), "'5' in quotes is text, not an integer; remove the quotes");
}

TEST_CASE("words stand for integers") {
  const Key key = free_key("workers", int64_t{0}).word("auto", -1).word("none", 0);
  CHECK(to_integer("auto", key) == -1);
  CHECK(to_integer("none", key, true) == 0);
  CHECK(to_integer("4", key) == 4);
  CHECK_THROWS_WITH(to_integer("atuo", key), "'atuo' is not an integer or 'auto' or 'none', did you mean 'auto'?");
}

TEST_CASE("words stand for numbers, but not for the ends of a curve") {
  const Key key = free_key("epsilon", -1.0).at_least(0).word("auto", -1).by_epoch();
  CHECK(std::get<double>(to_value(key, "auto", false)) == -1.0);
  CHECK(std::get<double>(to_value(key, "0.5", false)) == 0.5);
  CHECK(yaml_value(key, -1.0) == "auto");
  CHECK(yaml_value(key, 1.0) == "1.0");
  CHECK(type_text(key) == "number or auto or {from, to, curve}");
  CHECK(is_optional(key));
  CHECK_THROWS_WITH(to_value(key, "atuo", false), "'atuo' is not a number or 'auto', did you mean 'auto'?");
  CHECK_THROWS_WITH(to_value(key, "-1", false), "-1 is out of range, must be >= 0 or 'auto'");
  CHECK_THROWS_WITH(to_value(curve_keys(key).front(), "auto", false), "'auto' is not a number");
}

TEST_CASE("numbers are decimal and finite") {
  CHECK(to_real("1") == 1.0);
  CHECK(to_real("+.5") == 0.5);
  CHECK(to_real("5.") == 5.0);
  CHECK(to_real("-1E-3") == -0.001);
  CHECK(to_real("4.9e-324") == std::numeric_limits<double>::denorm_min());
  CHECK(std::signbit(to_real("-0.0")));
  CHECK_THROWS_WITH(to_real("1e400"), "'1e400' is too large or too small for a double");
  CHECK_THROWS_WITH(to_real("1e-400"), "'1e-400' is too large or too small for a double");
  for (const char* text : {".nan", ".NaN", "nan", ".inf", "-.inf", "+inf"}) {
    CHECK_THROWS_WITH(to_real(text), "'" + std::string(text) + "' is not a finite number");
  }
  for (const char* text : {"", ".", "e5", "1e", "1e+", "1.2.3", "0x1p3", "1f", "one", "1e5.5", "infinity"}) {
    CHECK_THROWS_WITH(to_real(text), "'" + std::string(text) + "' is not a number");
  }
  CHECK_THROWS_WITH(to_real("0.1", true), "'0.1' in quotes is text, not a number; remove the quotes");
}

TEST_CASE("a long value is cut in the message, control characters are spelled out") {
  CHECK_THROWS_WITH(to_real(std::string(100, 'x')), "'" + std::string(60, 'x') + "...' is not a number");
  CHECK_THROWS_WITH(to_real("a\nb\x7f"), "'a\\x0Ab\\x7F' is not a number");
}

TEST_CASE("a text takes any scalar") {
  const Folder folder;
  CHECK(folder.load("name: 2024\n").get<std::string>("name") == "2024");
  CHECK(folder.load("name: yes\n").get<std::string>("name") == "yes");
  CHECK(folder.load("name: 'null'\n").get<std::string>("name") == "null");
  CHECK(folder.load("name: |\n  a\n  b\n").get<std::string>("name") == "a\nb\n");
}

TEST_CASE("a value out of range names range and unit") {
  const Folder folder;
  CHECK(folder.error("optimizer: {lr: -1}\n") ==
        "run.yaml:1:17: optimizer.lr: -1 is out of range, must be > 0 (1/step)");
  CHECK(folder.error("optimizer: {momentum: 1}\n") ==
        "run.yaml:1:23: optimizer.momentum: 1 is out of range, must be >= 0 and < 1");
  CHECK(folder.error("data: {batch_size: 0}\n") ==
        "run.yaml:1:20: data.batch_size: 0 is out of range, must be >= 1 (images)");
  CHECK(folder.error("loss: {name: noised_topk_imbalanced, epsilon: 10.5}\n") ==
        "run.yaml:1:47: loss.epsilon: 10.5 is out of range, must be > 0 and <= 10");
}

TEST_CASE("bounds are included or not, as declared") {
  const Folder folder;
  CHECK(folder.load("optimizer: {momentum: 0, lr: 4.9e-324}\n").get<double>("optimizer.momentum") == 0);
  CHECK(folder.load("loss: {name: noised_topk_imbalanced, epsilon: 10}\n").get<double>("loss.epsilon") == 10);
  CHECK(folder.error("optimizer: {lr: 0}\n") == "run.yaml:1:17: optimizer.lr: 0 is out of range, must be > 0 (1/step)");
}

TEST_CASE("a word's meaning is no value that one may write") {
  const Folder folder;
  CHECK(folder.error("data: {workers: -1}\n") ==
        "run.yaml:1:17: data.workers: -1 is out of range, must be >= 0 or 'auto'");
  CHECK(folder.load("data: {workers: 'auto'}\n").get<int64_t>("data.workers") == -1);
}

TEST_CASE("every element of a list is checked, at its own place") {
  const Folder folder;
  CHECK(folder.error("eval: {top_k: [1, 0, five], splits: [val, tset]}\n") ==
        "3 problems in the configuration:\n"
        "  run.yaml:1:19: eval.top_k: 0 is out of range, must be >= 1 (classes)\n"
        "  run.yaml:1:22: eval.top_k: 'five' is not an integer\n"
        "  run.yaml:1:43: eval.splits: 'tset' is not one of train, val, test, did you mean 'test'?");
}

TEST_CASE("an empty list or text is refused where the key needs one") {
  const Folder folder;
  CHECK(folder.error("eval: {top_k: []}\n") == "run.yaml:1:15: eval.top_k: must not be empty");
  CHECK(folder.error("name: ''\n") == "run.yaml:1:7: name: must not be empty");
}

TEST_CASE("a key is optional where it accepts its default") {
  CHECK(is_optional(free_key("a", int64_t{-1}).at_least(0).word("auto", -1)));
  CHECK_FALSE(is_optional(free_key("a", int64_t{-1}).at_least(0)));
  CHECK_FALSE(is_optional(free_key("a", 0.0).above(0)));
  CHECK_FALSE(is_optional(free_key("a", Texts{}).not_empty()));
  CHECK_FALSE(is_optional(free_key("a", std::string("x")).one_of({"y"})));
  CHECK(is_optional(free_key("a", std::string("${env:A:-y}")).one_of({"y"})));
  CHECK(is_optional(free_key("a", Reals{1, 2}).at_least(1)));
}

TEST_CASE("a text that stands for a value of an enumeration is parsed when options are read") {
  enum class Colour { kRed, kBlue };
  struct Paint {
    Colour colour = Colour::kRed;
    Switch gloss = Switch::kOff;
  };
  const Schema schema{
      {{"paint",
        "",
        {key("colour", &Paint::colour, Colour::kBlue, "", {{"red", Colour::kRed}, {"blue", Colour::kBlue}}),
         key("gloss", &Paint::gloss, Switch::kAuto, "", auto_or("true", "false"))},
        "",
        "",
        {}}},
      {}};
  const auto read = [&](const std::vector<std::string>& settings) {
    return load(schema, {}, settings).read<Paint>("paint");
  };
  CHECK(read({}).colour == Colour::kBlue);
  CHECK(read({}).gloss == Switch::kAuto);
  CHECK(read({"paint.colour=red", "paint.gloss=true"}).colour == Colour::kRed);
  CHECK(read({"paint.colour=red", "paint.gloss=true"}).gloss == Switch::kOn);
  CHECK(load(schema, {}, {"paint.gloss=false"}).get<std::string>("paint.gloss") == "false");
  CHECK_THROWS_WITH(read({"paint.colour=green"}), Catch::Contains("paint.colour") && Catch::Contains("red, blue"));
  CHECK_THROWS_AS(value_named<Colour>({{"red", Colour::kRed}}, "blue"), std::invalid_argument);
}

}  // namespace settrain::config::test
