#include "src/formats/pickle.h"

#include "src/core/error.h"
#include "tests/support/catch2.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/weight_bytes.h"

namespace settrain {
namespace {

using Catch::Contains;

Pickle read(const std::string& bytes) {
  const test::TemporaryFolder folder;
  folder.write("a.pkl", bytes);
  const InputFile file(folder / "a.pkl");
  PickleInput input(file, 0, file.size());
  return read_pickle(input);
}

const PickleNode& item(const Pickle& pickle, size_t index) {
  return pickle[pickle[pickle.root].items.at(index)];
}

void check_pickle_refused(const std::string& bytes, const std::string& reason) {
  INFO(bytes.substr(0, 100));
  CHECK_THROWS_WITH(read(bytes), Contains("a.pkl', byte ") && Contains(reason));
  CHECK_THROWS_AS(read(bytes), RunError);
}

std::string opcode(int code) {
  return std::string(1, static_cast<char>(code));
}

}  // namespace

TEST_CASE("values of every kind are read") {
  const std::string real = "G\x3f\xe0" + std::string(6, '\0');  // big-endian
  const Pickle pickle =
      read(test::pickle("](N\x88\x89K\xc8M\x10\x27J\xff\xff\xff\xff" + real + test::text("a\xC3\xA9") + "\x8c\x01" +
                        "b" + test::global("m", "n") + ")" + test::dict({test::text("k"), "K\x01"}) +
                        std::string("\x8a\x02\x00\x80", 4) + "\x8a" + opcode(0) + "e"));
  REQUIRE(pickle[pickle.root].items.size() == 14);
  CHECK(item(pickle, 0).kind == PickleKind::kNone);
  CHECK((item(pickle, 1).kind == PickleKind::kBool && item(pickle, 1).integer == 1));
  CHECK((item(pickle, 2).kind == PickleKind::kBool && item(pickle, 2).integer == 0));
  CHECK(item(pickle, 3).integer == 200);
  CHECK(item(pickle, 4).integer == 10'000);
  CHECK(item(pickle, 5).integer == -1);
  CHECK(item(pickle, 6).real == 0.5);
  CHECK(item(pickle, 7).text == "a\xC3\xA9");
  CHECK(item(pickle, 8).text == "b");
  CHECK((item(pickle, 9).kind == PickleKind::kGlobal && item(pickle, 9).text == "m.n"));
  CHECK((item(pickle, 10).kind == PickleKind::kTuple && item(pickle, 10).items.empty()));
  CHECK((item(pickle, 11).kind == PickleKind::kDict && item(pickle, 11).items.size() == 2));
  CHECK(item(pickle, 12).integer == -32'768);
  CHECK(item(pickle, 13).integer == 0);
}

TEST_CASE("a call becomes a value that says what was asked for, and nothing more happens") {
  const Pickle pickle = read(test::pickle(test::call(test::global("os", "system"), {test::text("false")})));
  const PickleNode& call = pickle[pickle.root];
  REQUIRE(call.kind == PickleKind::kCall);
  CHECK(pickle[call.operands[0]].text == "os.system");
  CHECK(pickle[pickle[call.operands[1]].items.at(0)].text == "false");
}

TEST_CASE("protocol 4 is read: frames, memory without numbers, names from the stack") {
  const std::string frame = "\x95" + std::string(8, '\0');
  const Pickle pickle = read("\x80\x04" + frame + "\x8c\x01m\x94\x8c\x01n\x94\x93\x94h" + opcode(2) + "\x86.");
  CHECK(item(pickle, 0).text == "m.n");
  CHECK(pickle[pickle.root].items[0] == pickle[pickle.root].items[1]);
}

TEST_CASE("a pickle that asks for what is not there is refused") {
  check_pickle_refused("", "ends within a value");
  check_pickle_refused("\x80\x02", "ends within a value");
  check_pickle_refused("\x80\x02.", "empty stack");
  check_pickle_refused("\x80\x06N.", "pickle protocol 6");
  check_pickle_refused("\x80\x02X\xff\xff\xff\x7f", "ends within a text");
  check_pickle_refused("\x80\x02\x8d" + std::string(8, '\xff'), "ends within a text");
  check_pickle_refused("\x80\x02\x8b\xff\xff\xff\xff", "ends within a text");
  check_pickle_refused(
      "\x80\x02"
      "cabc",
      "ends within a value");
  check_pickle_refused(
      "\x80\x02"
      "c" +
          std::string(2000, 'x'),
      "longer than 1000 bytes");
  check_pickle_refused("\x80\x02(", "ends within a value");
  check_pickle_refused("\x80\x02t", "a mark that is not there");
  check_pickle_refused("\x80\x02(\x86.", "empty stack");
  check_pickle_refused("\x80\x02NNa.", "no list");
  check_pickle_refused("\x80\x02NNNs.", "no dict");
  check_pickle_refused("\x80\x02}(Nu.", "has no value");
  check_pickle_refused("\x80\x02(Nd.", "has no value");
  check_pickle_refused("\x80\x02NNb.", "the state is set");
  check_pickle_refused("\x80\x02NN\x93.", "is no text");
  check_pickle_refused("\x80\x02h\x05.", "never remembered");
  check_pickle_refused("\x80\x02j\xff\xff\xff\xff.", "never remembered");
  check_pickle_refused("\x80\x02Nr\xff\xff\xff\xff.", "remembered values");
  check_pickle_refused(
      "\x80\x02"
      "R.",
      "empty stack");
  check_pickle_refused("\x80\x02Q.", "empty stack");
}

TEST_CASE("opcodes of things that no weights need are refused by what they are for") {
  for (const auto& [code, purpose] : std::vector<std::pair<int, std::string>>{{'I', "protocol 0"},
                                                                              {'i', "an object of a class"},
                                                                              {'o', "an object of a class"},
                                                                              {'B', "bytes"},
                                                                              {0x8e, "bytes"},
                                                                              {0x8f, "a set"},
                                                                              {0x91, "a set"},
                                                                              {'P', "persistent"},
                                                                              {0x82, "extension"},
                                                                              {0xfe, "nothing that Python knows"}}) {
    check_pickle_refused("\x80\x02" + opcode(code), purpose);
  }
}

TEST_CASE("the number of values is bounded, and nesting takes no stack") {
  check_pickle_refused("\x80\x02" + std::string(kMostPickleValues + 1, '}'), "more than 1000000 values");
  // Half a million lists, each in the one before.
  const size_t depth = kMostPickleValues / 2;
  const Pickle pickle = read("\x80\x02" + std::string(depth, ']') + std::string(depth - 1, 'a') + ".");
  CHECK(pickle.nodes.size() == depth);
  CHECK(pickle[pickle.root].items.size() == 1);
}

}  // namespace settrain
