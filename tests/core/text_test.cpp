#include "src/core/text.h"

#include <limits>
#include <string>
#include <vector>

#include "tests/support/catch2.h"

using namespace settrain;

TEST_CASE("a long list is told by its first texts and the number of the others") {
  const std::vector<std::string> texts{"a", "b", "c"};
  CHECK(join_first(texts, 3) == "a, b, c");
  CHECK(join_first(texts, 2, "; ") == "a; b and 1 more");
  CHECK(join_first(std::vector<std::string>(1002, "x"), 1) == "x and 1,001 more");
  CHECK(join_first({}, 2).empty());
}

TEST_CASE("Characters are counted and cut whole, however many bytes they take") {
  const std::string text = "a\u00e9\u2192\U0001F600z";  // of one, two, three, four bytes and one
  REQUIRE(text.size() == 11);
  CHECK(count_characters(text) == 5);
  CHECK(first_characters(text, 0).empty());
  CHECK(first_characters(text, 1) == "a");
  CHECK(first_characters(text, 2) == "a\u00e9");
  CHECK(first_characters(text, 3) == "a\u00e9\u2192");
  CHECK(first_characters(text, 4) == "a\u00e9\u2192\U0001F600");
  CHECK(first_characters(text, 5) == text);
  CHECK(first_characters(text, 99) == text);
  CHECK(first_characters("", 3).empty());
}

TEST_CASE("Control characters become question marks, and nothing else does") {
  CHECK(printable("a\x1B[2J\n\x7F") == "a?[2J??");
  CHECK(printable("\xC2\x9B\xC3\xA9\xC2\xA0") == "?\xC3\xA9\xC2\xA0");
  CHECK(printable("\xC2") == "\xC2");
}

TEST_CASE("Bytes that are not UTF-8 are found") {
  CHECK(is_utf8("a\u00e9\u2192\U0001F600"));
  // A lone continuation, a cut sequence, an overlong one, a surrogate, and a code point beyond U+10FFFF.
  for (const char* text : {"\x80", "\xE2\x86", "\xC0\xAF", "\xE0\x80\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80"}) {
    CHECK_FALSE(is_utf8(text));
  }
}

TEST_CASE("Quotes hold one line and a beginning") {
  CHECK(in_quotes("a\nb\xFF") == "'a\\x0Ab\\xFF'");
  CHECK(in_quotes(std::string(60, 'x')) == "'" + std::string(60, 'x') + "'");
  CHECK(in_quotes(std::string(59, 'x') + "\u00e9y") == "'" + std::string(59, 'x') + "\u00e9...'");
}

TEST_CASE("What a shell would replace at a path's front is known, and has other words in a config") {
  CHECK(shell_part("~") == "~");
  CHECK(shell_part("~/x/~") == "~");
  CHECK(shell_part("$MY_DATA2/x") == "$MY_DATA2");
  CHECK(in_config_words("~/x") == "${env:HOME}/x");
  CHECK(in_config_words("$MY_DATA2") == "${env:MY_DATA2}");
  CHECK(shell_hint("~/x").find("~ is not replaced") != std::string::npos);
  for (const char* path : {"", "x", "./~", "a/~/b", "~x", "~backup/y", "$", "$/x", "$a-b", "a$b"}) {
    CHECK(shell_part(path).empty());
    CHECK(shell_hint(path).empty());
    CHECK(in_config_words(path) == path);
  }
}

TEST_CASE("Only letters of ASCII become small") {
  CHECK(lower_case("A.HEIC z\u00c9[]") == "a.heic z\u00c9[]");
}

TEST_CASE("A number is all of a text, or none") {
  CHECK(parse_number<int64_t>("-12") == -12);
  CHECK(parse_number<double>("1e-3") == 1e-3);
  CHECK(parse_number<uint8_t>("255") == 255);
  CHECK_FALSE(parse_number<uint8_t>("256"));
  for (const char* text : {"", " 1", "1 ", "+1", "1x", "x"}) {
    CHECK_FALSE(parse_number<int64_t>(text));
    CHECK_FALSE(parse_number<double>(text));
  }
}

TEST_CASE("The nearest name is suggested where it may be a typo") {
  const std::vector<std::string> names{"momentum", "lr", "nesterov"};
  CHECK(did_you_mean("momentmu", names) == ", did you mean 'momentum'?");
  CHECK(did_you_mean("rl", names, "optimizer.") == ", did you mean 'optimizer.lr'?");
  CHECK(did_you_mean("weight_decay", names).empty());
  CHECK(did_you_mean(std::string(81, 'x'), std::vector{std::string(81, 'x')}).empty());
  CHECK(did_you_mean("lr", {}).empty());
}

TEST_CASE("HTML's own characters are escaped") {
  CHECK(escape_html("a & <b> \"c\" 'd'") == "a &amp; &lt;b&gt; &quot;c&quot; &#39;d&#39;");
  CHECK(escape_html("") == "");
}

TEST_CASE("Durations") {
  CHECK(format_duration(0) == "0s");
  CHECK(format_duration(0.6) == "1s");
  CHECK(format_duration(59.4) == "59s");
  CHECK(format_duration(59.6) == "1m 00s");
  CHECK(format_duration(3599.6) == "1h 00m 00s");
  CHECK(format_duration(3725) == "1h 02m 05s");
  CHECK(format_duration(2 * 86400 + 3 * 3600 + 4 * 60 + 5) == "2d 03h 04m");
  CHECK(format_duration(-1) == "?");
  CHECK(format_duration(1e300) == "?");
  CHECK(format_duration(std::numeric_limits<double>::quiet_NaN()) == "?");
}

TEST_CASE("Counts") {
  CHECK(format_count(0) == "0");
  CHECK(format_count(999) == "999");
  CHECK(format_count(1000) == "1,000");
  CHECK(format_count(1234567) == "1,234,567");
  CHECK(format_count(-123) == "-123");
  CHECK(format_count(-123456) == "-123,456");
}

TEST_CASE("Bytes") {
  CHECK(format_bytes(0) == "0 B");
  CHECK(format_bytes(1023) == "1023 B");
  CHECK(format_bytes(1024) == "1.0 KiB");
  CHECK(format_bytes(1536) == "1.5 KiB");
  CHECK(format_bytes(1024 * 1024 - 1) == "1.0 MiB");
  CHECK(format_bytes(uint64_t{25} << 30) == "25.0 GiB");
  CHECK(format_bytes(std::numeric_limits<uint64_t>::max()) == "16.0 EiB");
}

TEST_CASE("base64 gives every byte back, and takes nothing else") {
  const auto bytes_of = [](std::string_view text) { return std::vector<uint8_t>(text.begin(), text.end()); };
  // RFC 4648, section 10.
  for (const auto& [plain, text] : std::vector<std::pair<std::string, std::string>>{
           {"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foob", "Zm9vYg=="}, {"foobar", "Zm9vYmFy"}}) {
    CHECK(to_base64(bytes_of(plain)) == text);
    CHECK(from_base64(text) == bytes_of(plain));
  }
  for (const char* text : {"Zg", "Zg=", "Z===", " Zm9v", "Zm9v\n\n\n\n", "Zh==", "Zm9*", "=AAA", "Zg==Zg=="})
    CHECK_FALSE(from_base64(text));
}
