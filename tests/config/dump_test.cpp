#include <cstring>
#include <fstream>
#include <random>

#include "src/config/load.h"
#include "src/config/value.h"
#include "tests/config/sample.h"
#include "tests/support/catch2.h"

namespace settrain::config::test {
namespace {

bool same_bits(const Value& a, const Value& b) {
  const auto bits = [](double value) {
    uint64_t word;
    std::memcpy(&word, &value, sizeof word);
    return word;
  };
  if (a.index() != b.index()) return false;
  if (const auto* real = std::get_if<double>(&a)) return bits(*real) == bits(std::get<double>(b));
  if (const auto* reals = std::get_if<Reals>(&a)) {
    const Reals& others = std::get<Reals>(b);
    return std::equal(reals->begin(), reals->end(), others.begin(), others.end(),
                      [&](double x, double y) { return bits(x) == bits(y); });
  }
  return a == b;
}

class Generator {
 public:
  double real() {
    for (;;) {
      const uint64_t word = random_();
      double value;
      std::memcpy(&value, &word, sizeof value);
      if (random_() % 4 == 0) value = static_cast<double>(static_cast<int64_t>(random_() % 2001) - 1000) / 8;
      if (random_() % 8 == 0) value = std::ldexp(value, -1074) * static_cast<double>(random_() % 100);
      if (std::isfinite(value)) return value;
    }
  }
  int64_t integer() { return static_cast<int64_t>(random_()) >> (random_() % 64); }
  bool boolean() { return random_() % 2; }

  std::string text() {
    static const Texts kPieces = {"a",
                                  "Z",
                                  "0",
                                  "1e5",
                                  " ",
                                  "\n",
                                  "\t",
                                  "\r",
                                  "\"",
                                  "'",
                                  "\\",
                                  "$",
                                  "{",
                                  "}",
                                  "${",
                                  "$${",
                                  ":",
                                  ": ",
                                  "#",
                                  " #",
                                  "- ",
                                  ",",
                                  "[",
                                  "]",
                                  "&",
                                  "*",
                                  "!",
                                  "%",
                                  "@",
                                  "`",
                                  "true",
                                  "null",
                                  "~",
                                  "yes",
                                  "\x01",
                                  ".",
                                  "/",
                                  "\xC2\x85",
                                  "\xC2\xA0",
                                  "\x7F",
                                  "|",
                                  ">",
                                  "?",
                                  "<<",
                                  "é",
                                  "日本",
                                  "\xF0\x9F\x98\x80",
                                  "\xE2\x80\xA8",
                                  "\xEF\xBB\xBF",
                                  "---",
                                  "..."};
    std::string text;
    for (size_t i = 0, pieces = random_() % 6; i < pieces; ++i) text += kPieces[random_() % kPieces.size()];
    if (random_() % 10 == 0) text += '\0';
    return text;
  }

  template <class T>
  std::vector<T> list(T (Generator::*element)()) {
    std::vector<T> list(random_() % 5);
    for (T& value : list) value = (this->*element)();
    return list;
  }

 private:
  std::mt19937_64 random_{4};
};

Schema schema_of(const std::vector<Value>& values) {
  Schema schema;
  for (size_t i = 0; i < values.size(); ++i) {
    Key key;
    key.name = "key" + std::to_string(i);
    key.default_value = Value(values[i]);
    schema.sections.push_back(
        {"s" + std::to_string(i % 3) + (i % 3 == 2 ? ".t" : "") + std::to_string(i), "", {key}, "", "", {}});
  }
  return schema;
}

}  // namespace

TEST_CASE("the dump holds every key of the chosen variants, nested") {
  const Folder folder;
  const Config config = folder.load("loss: {name: noised_topk_imbalanced, epsilon: 0.01}\nselect: [val/top5, 'a b']\n");
  CHECK(config.to_yaml() ==
        "name: run\n"
        "seed: 4\n"
        "select: [val/top5, \"a b\"]\n"
        "run:\n"
        "  dir: runs/run\n"
        "data:\n"
        "  name: synthetic\n"
        "  root: data\n"
        "  batch_size: 32\n"
        "  workers: auto\n"
        "  label_noise:\n"
        "    kind: none\n"
        "    seed: 0\n"
        "loss:\n"
        "  name: noised_topk_imbalanced\n"
        "  k: 5\n"
        "  epsilon: 0.01\n"
        "  max_margin: 0.2\n"
        "  noise:\n"
        "    kind: normal\n"
        "optimizer:\n"
        "  lr: 0.1\n"
        "  momentum: 0.9\n"
        "  nesterov: true\n"
        "eval:\n"
        "  top_k: [1, 5]\n"
        "  average_k: [2.0, 2.5]\n"
        "  splits: [val, test]\n");
}

TEST_CASE("the dump with origins says where each value came from") {
  const Folder folder;
  const std::string text = folder.load("optimizer:\n  lr: 1\n", {"seed=3"}).to_yaml_with_origins();
  CHECK_THAT(text, Catch::Contains("  lr: 1.0  # " + folder.path("run.yaml").string() + ":2:7\n"));
  CHECK_THAT(text, Catch::Contains("seed: 3  # --set seed=3\n"));
  CHECK_THAT(text, Catch::Contains("  momentum: 0.9  # default\n"));
  CHECK(folder.load(text).get<double>("optimizer.lr") == 1);
}

TEST_CASE("numbers are as short as they can be, and numbers to every YAML reader") {
  CHECK(format_real(1) == "1.0");
  CHECK(format_real(-0.0) == "-0.0");
  CHECK(format_real(0.1) == "0.1");
  CHECK(format_real(1e-5) == "1.0e-05");
  CHECK(format_real(1.5e300) == "1.5e+300");
  CHECK(format_real(5e-324) == "5.0e-324");
}

TEST_CASE("texts are quoted where a YAML reader could take them for something else") {
  for (const char* text : {"sgd", "val/top5", "/usr/share/x-1.0", "runs/a_b"}) CHECK(yaml_text(text) == text);
  for (const char* text : {"", "true", "Yes", "OFF", "null", "~", "1", "1e5", ".5", "-", "a b", "a:", "#", "n"}) {
    CHECK(yaml_text(text) == "\"" + std::string(text) + "\"");
  }
  CHECK(yaml_text("a\"\\\n\t\r\x01é") == "\"a\\\"\\\\\\n\\t\\r\\u0001é\"");
}

TEST_CASE("a dump loads to the same values, to the last bit") {
  const Folder folder;
  Generator random;
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<Value> values;
    for (int i = 0; i < 6; ++i) {
      values.emplace_back(random.real());
      values.emplace_back(random.integer());
      values.emplace_back(random.boolean());
      values.emplace_back(random.text());
      values.emplace_back(random.list(&Generator::real));
      values.emplace_back(random.list(&Generator::integer));
      values.emplace_back(random.list(&Generator::text));
    }
    // The values go in by way of an entry list, so that only the dump and the reading of it are on trial.
    const Schema schema = schema_of(values);
    std::vector<Entry> entries;
    for (size_t i = 0; i < values.size(); ++i) {
      const Section& section = schema.sections[i];
      entries.push_back({section.name + "." + section.keys[0].name, section.keys[0], values[i], {"test"}});
    }
    const std::string yaml = Config(entries).to_yaml();
    INFO(yaml);
    const Config loaded = load(schema, folder.write("dump.yaml", yaml), {});
    for (const Entry& entry : entries) REQUIRE(same_bits(loaded.at(entry.path).value, entry.value));
    REQUIRE(loaded.to_yaml() == yaml);
  }
}

TEST_CASE("the dump of a loaded file loads to the same configuration under any name") {
  const Folder folder;
  const Config config =
      folder.load("name: ${env:SETTRAIN_NO:-$${x}}\ndata: {name: cifar100, label_noise: {kind: uniform}}\n");
  CHECK(config.get<std::string>("name") == "${x}");
  const Config again = load(sample_schema(), folder.write("other.yaml", config.to_yaml()), {});
  CHECK(again.get<std::string>("name") == "${x}");
  CHECK(again.to_yaml() == config.to_yaml());
}

}  // namespace settrain::config::test
