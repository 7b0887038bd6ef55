// Files of torch.save, made by hand: right ones, and those that mean harm.
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <random>

#include "src/core/error.h"
#include "src/formats/contents.h"
#include "src/formats/weight_file.h"
#include "tests/support/catch2.h"
#include "tests/support/read_file.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/weight_bytes.h"

namespace settrain {
namespace {

using Catch::Contains;
using Catch::EndsWith;
using test::dict;
using test::floats;
using test::integer;
using test::storage;
using test::tensor;
using test::text;
using test::torch_legacy;
using test::torch_zip;

class File {
 public:
  explicit File(const std::string& bytes) { folder_.write("w.pth", bytes); }

  WeightFile open() const { return WeightFile(folder_ / "w.pth"); }

  // All tensors' values, all of them float32.
  std::vector<std::vector<float>> values() const {
    WeightFile file = open();
    std::vector<std::vector<float>> all;
    for (const TensorEntry& entry : file.contents().tensors) {
      REQUIRE(entry.dtype == Dtype::kFloat32);
      std::vector<float> values(static_cast<size_t>(entry.num_elements()));
      file.read(entry, values.data());
      all.push_back(values);
    }
    return all;
  }

 private:
  test::TemporaryFolder folder_;
};

// Both formats hold the same.
void check_values(const std::string& value, const std::vector<std::string>& storages,
                  const std::vector<std::vector<float>>& expected) {
  CHECK(File(torch_zip(value, storages).bytes()).values() == expected);
  CHECK(File(torch_legacy(value, storages)).values() == expected);
}

void check_torch_file_refused(const std::string& bytes, const std::string& reason) {
  const File file(bytes);
  CHECK_THROWS_WITH(file.open(), Contains("w.pth'") && Contains(reason));
  CHECK_THROWS_AS(file.open(), RunError);
}

void check_both_refused(const std::string& value, const std::vector<std::string>& storages, const std::string& reason) {
  check_torch_file_refused(torch_zip(value, storages).bytes(), reason);
  check_torch_file_refused(torch_legacy(value, storages), reason);
}

std::string one_tensor(int64_t offset, const std::vector<int64_t>& shape, const std::vector<int64_t>& stride,
                       int64_t elements = 6) {
  return dict({text("a"), tensor(storage("0", elements), offset, shape, stride)});
}

// Opens a file that may be damaged and reads all of it. Anything but RunError fails the test.
bool is_readable(const std::filesystem::path& path) {
  try {
    WeightFile file(path);
    for (const TensorEntry& entry : file.contents().tensors) {
      CHECK(entry.num_bytes() <= 8 * std::filesystem::file_size(path));
      std::vector<uint8_t> bytes(entry.num_bytes());
      file.read(entry, bytes.data());
    }
    return true;
  } catch (const RunError& error) {
    CHECK_THAT(error.what(), Contains(path.string()));
    return false;
  }
}

}  // namespace

TEST_CASE("views of a storage are written out in their order") {
  check_values(one_tensor(0, {2, 3}, {3, 1}), {floats(6)}, {{0, 1, 2, 3, 4, 5}});
  check_values(one_tensor(0, {3, 2}, {1, 3}), {floats(6)}, {{0, 3, 1, 4, 2, 5}});
  check_values(one_tensor(1, {2, 2}, {3, 1}), {floats(6)}, {{1, 2, 4, 5}});
  check_values(one_tensor(2, {2, 3}, {0, 1}), {floats(6)}, {{2, 3, 4, 2, 3, 4}});
  check_values(one_tensor(5, {}, {}), {floats(6)}, {{5}});
  check_values(one_tensor(0, {0, 3}, {3, 1}), {floats(6)}, {{}});
  check_values(one_tensor(0, {1, 6, 1}, {1LL << 62, 1, 1LL << 62}), {floats(6)}, {{0, 1, 2, 3, 4, 5}});
  check_values(one_tensor(0, {2, 1, 3}, {3, 7, 1}), {floats(6)}, {{0, 1, 2, 3, 4, 5}});
}

TEST_CASE("several tensors, parameters, the first kind of tensor, pairs of an ordered dict") {
  const std::string of_0 = storage("0", 2), of_1 = storage("1", 3);
  const std::string parameter = test::call(test::global("torch._utils", "_rebuild_parameter"),
                                           {tensor(of_1, 0, {3}, {1}), "\x88", test::ordered_dict()});
  const std::string first = test::call(test::global("torch._utils", "_rebuild_tensor"),
                                       {of_0, integer(1), test::integers({1}), test::integers({1})});
  check_values(test::ordered_dict({text("a"), tensor(of_0, 0, {2}, {1}), text("b"), parameter, text("c"), first}),
               {floats(2), floats(3)}, {{0, 1}, {0, 1, 2}, {1}});
  const std::string pairs =
      test::call(test::global("collections", "OrderedDict"), {"](](" + text("a") + tensor(of_0, 0, {2}, {1}) + "ee"});
  check_values(pairs, {floats(2)}, {{0, 1}});
}

TEST_CASE("other values are kept with their paths") {
  const std::string value = dict({text("epoch"), integer(3), text("names"), "](" + text("x") + "N\x88" + "e",
                                  integer(7), "G" + std::string(8, '\0')});
  const Contents contents = File(torch_zip(value, {}).bytes()).open().contents();
  CHECK(contents.tensors.empty());
  std::vector<std::string> lines;
  for (const Leaf& leaf : contents.leaves) lines.push_back(joined(leaf.path) + ": " + describe(leaf));
  CHECK(lines == std::vector<std::string>{"epoch: 3", "names.0: \"x\"", "names.1: None", "names.2: True", "7: 0.0"});
}

TEST_CASE("a storage in the memory of another is found there") {
  const std::string view = test::tuple({text("storage"), test::global("torch", "FloatStorage"), text("0"), text("cpu"),
                                        integer(6), test::tuple({text("1"), integer(2), integer(3)})}) +
                           "Q";
  const auto of_view = [&](int64_t offset, int64_t size) {
    return dict({text("whole"), tensor(storage("0", 6), 0, {6}, {1}), text("a"), tensor(view, offset, {size}, {1})});
  };
  CHECK(File(torch_legacy(of_view(1, 2), {floats(6)})).values().at(1) == std::vector<float>{3, 4});
  check_torch_file_refused(torch_legacy(of_view(1, 3), {floats(6)}),
                           "tensor \"a\": it needs 6 elements of a storage that has 5");
}

TEST_CASE("tensors that do not lie within their storage are refused") {
  const int64_t huge = 1LL << 60;
  check_both_refused(one_tensor(0, {7}, {1}), {floats(6)}, "tensor \"a\": it needs 7 elements of a storage that has 6");
  check_both_refused(one_tensor(1, {6}, {1}), {floats(6)}, "it needs 7 elements");
  check_both_refused(one_tensor(7, {0}, {1}), {floats(6)}, "it needs 7 elements");
  check_both_refused(one_tensor(0, {2, 3}, {4, 1}), {floats(6)}, "it needs 7 elements");
  check_both_refused(one_tensor(huge, {1}, {1}), {floats(6)}, "it needs 1152921504606846977 elements");
  check_both_refused(one_tensor(0, {2}, {1LL << 62}), {floats(6)}, "elements of a storage that has 6");
  check_both_refused(one_tensor(0, {3}, {1LL << 62}), {floats(6)}, "further than 2^63 elements");
  check_both_refused(one_tensor(1LL << 62, {2}, {1LL << 62}), {floats(6)}, "further than 2^63 elements");
  // Products that are 0 or 6 once they wrap around.
  check_both_refused(one_tensor(0, {1LL << 32, 1LL << 32}, {0, 0}), {floats(6)}, "more than 2^63 bytes");
  check_both_refused(one_tensor(0, {0, huge, huge}, {0, 0, 0}), {floats(6)}, "more than 2^63 bytes");
  check_both_refused(one_tensor(0, {6}, {1, 1}), {floats(6)}, "has 1 sizes, and there are 2 strides");
  check_both_refused(one_tensor(0, {-1}, {1}), {floats(6)}, "one of a tensor's sizes is no whole number from 0");
  check_both_refused(one_tensor(0, {2}, {-1}), {floats(6)}, "one of a tensor's strides is no whole number from 0");
  check_both_refused(one_tensor(-1, {2}, {1}), {floats(6)}, "a tensor's offset is no whole number from 0");
  check_both_refused(one_tensor(0, std::vector<int64_t>(65, 1), std::vector<int64_t>(65, 1)), {floats(6)},
                     "one of more than 64");
}

TEST_CASE("a storage without a type's name is refused, though some types have no storage in PyTorch") {
  for (const char* type : {"", "UInt16Storage"}) {
    check_both_refused(dict({text("a"), tensor(storage("0", 6, type), 0, {6}, {1})}), {floats(6)}, "");
  }
}

TEST_CASE("storages that are not what the pickle says are refused") {
  check_torch_file_refused(torch_zip(one_tensor(0, {7}, {1}, 7), {floats(6)}).bytes(),
                           "should have 7 elements, and has 24 bytes");
  check_torch_file_refused(torch_zip(one_tensor(0, {1}, {1}, 1LL << 60), {floats(6)}).bytes(), "and has 24 bytes");
  check_torch_file_refused(torch_zip(one_tensor(0, {1}, {1}), {}).bytes(), "storage \"0\" of a tensor is not there");
  check_torch_file_refused(torch_legacy(one_tensor(0, {7}, {1}, 7), {floats(6)}), "should have 7 elements, and says 6");
  check_torch_file_refused(torch_legacy(one_tensor(0, {1}, {1}), {}), "storage \"0\" of a tensor is not there");
  check_torch_file_refused(torch_legacy(one_tensor(0, {1}, {1}), {floats(6), floats(1)}),
                           "storage \"1\" belongs to no tensor");
  check_torch_file_refused(torch_legacy(one_tensor(0, {1}, {1}, 1LL << 60), {}), "is not there");
  const std::string cut = torch_legacy(one_tensor(0, {6}, {1}), {floats(6)});
  check_torch_file_refused(cut.substr(0, cut.size() - 1), "is cut short");
}

TEST_CASE("a few bytes cannot ask for much memory") {
  // A view that repeats one number, and a storage that is shared by many tensors.
  check_both_refused(one_tensor(0, {1'000'000'000}, {0}), {floats(6)}, "would take more than 8 times");
  std::vector<std::string> items{text("first"), storage("0", 5000) + "q\x05" + "0N"};
  for (int i = 0; i < 100; ++i) {
    items.push_back(text("t" + std::to_string(i)));
    items.push_back(tensor("h\x05", 0, {5000}, {1}));
  }
  check_both_refused(dict(items), {floats(5000)}, "would take more than 8 times");
}

TEST_CASE("values that are shared are counted as often as they are met") {
  // 40 lists, each holding the one before twice: 2^40 numbers.
  std::string bomb = "K\x01q";
  bomb += '\0';
  for (char i = 0; i < 40; ++i) bomb += std::string("](h") + i + "h" + i + "eq" + static_cast<char>(i + 1);
  check_both_refused(bomb, {}, "take more than 67108864 bytes");
  // The same of a text.
  std::string texts = text(std::string(1'000'000, 'x')) + "q";
  texts += '\0';
  texts += "0](";
  for (int i = 0; i < 100; ++i) texts += std::string("h") + '\0';
  check_both_refused(texts + "e", {}, "take more than 67108864 bytes");
  // A list that holds itself.
  check_both_refused(std::string("]q\x05h\x05"
                                 "a"),
                     {}, "nested more than 64 deep");
  check_both_refused(std::string(100'000, ']') + std::string(99'999, 'a'), {}, "nested more than 64 deep");
}

TEST_CASE("what a million bytes can ask for stays small") {
  // An ordered dict of pairs that hold itself; names made of one remembered text; one tensor under many names.
  const std::string itself = test::global("collections", "OrderedDict") + "](" + "]q\x05" + text("a") + "h\x05\x86" +
                             std::string(500'000, '2') + "e\x85R";
  check_both_refused(itself, {}, "");
  std::string names = text(std::string(900, 'x')) +
                      "q\x05"
                      "0";
  for (int i = 0; i < 10'000; ++i)
    names +=
        "h\x05h\x05\x93"
        "0";
  check_both_refused(names + "N", {}, "more than 4194304 bytes");
  std::string many =
      "](" + tensor(storage("0", 1), 0, std::vector<int64_t>(64, 1), std::vector<int64_t>(64, 1)) + "q\x05";
  for (int i = 0; i < 200'000; ++i) many += "h\x05";
  check_both_refused(many + "e", {floats(1)}, "take more than 67108864 bytes");
  check_both_refused("N" + std::string(5'000'000, '2'), {}, "used more than 4000000 times");
  check_both_refused(std::string(2'000'000, '('), {}, "more marks than values may be");
}

TEST_CASE("views with gaps of one storage read it once") {
  // 500 columns of 2,000 x 500 numbers: a second each if every one read all of it anew.
  std::vector<std::string> items{text("all"), tensor(storage("0", 1'000'000) + "q\x05", 0, {2000, 500}, {500, 1})};
  for (int i = 0; i < 500; ++i) {
    items.push_back(text(std::to_string(i)));
    items.push_back(tensor("h\x05", i, {2000}, {500}));
  }
  const File file(torch_zip(dict(items), {floats(1'000'000)}).bytes());
  const auto values = file.values();
  REQUIRE(values.size() == 501);
  CHECK(values[500][1999] == 999'999);
  CHECK(values[1][1] == 500);
}

TEST_CASE("containers of numbers that schedules and sizes are") {
  const std::string counter = test::call(test::global("collections", "Counter"), {dict({integer(150), integer(1)})});
  const std::string size = test::call(test::global("torch", "Size"), {test::integers({3, 4})});
  const Contents contents =
      File(torch_zip(dict({text("milestones"), counter, text("shape"), size}), {}).bytes()).open().contents();
  std::vector<std::string> lines;
  for (const Leaf& leaf : contents.leaves) lines.push_back(joined(leaf.path) + ": " + describe(leaf));
  CHECK(lines == std::vector<std::string>{"milestones.150: 1", "shape.0: 3", "shape.1: 4"});
}

TEST_CASE("storages are of the type that the pickle says") {
  const std::string bytes = torch_zip(dict({text("a"), tensor(storage("0", 3, "ShortStorage"), 0, {3}, {1}), text("b"),
                                            tensor(storage("0", 6, "ByteStorage"), 2, {2}, {3})}),
                                      {std::string("\1\0\2\0\3\0", 6)})
                                .bytes();
  const File written(bytes);
  WeightFile file = written.open();
  std::vector<int16_t> a(3);
  std::vector<uint8_t> b(2);
  file.read(file.contents().tensors[0], a.data());
  file.read(file.contents().tensors[1], b.data());
  CHECK(a == std::vector<int16_t>{1, 2, 3});
  CHECK(b == std::vector<uint8_t>{2, 0});
  check_torch_file_refused(torch_zip(one_tensor(0, {6}, {1}), {std::string(8, '\0') + floats(6)}).bytes(),
                           "and has 32 bytes");
}

TEST_CASE("an object of a class that is no tensor's is opaque, with all that it holds") {
  const std::string of_object = tensor(storage("1", 3), 0, {3}, {1});
  const std::string arguments = test::global("argparse", "Namespace") + ")\x81" +
                                dict({text("lr"), integer(1), text("weights"), of_object}) + "b";
  const std::string value =
      dict({text("args"), arguments, text("class"), test::global("timm.models", "ViT"), text("set"),
            test::call(test::global("__builtin__", "set"), {"](" + integer(1) + integer(2) + "e"}), text("type"),
            test::global("torch", "float16"), text("device"),
            test::call(test::global("torch", "device"), {text("cuda")}), text("queue"),
            test::global("collections", "deque") + ")R](" + integer(1) + "ea(" + integer(2) + integer(3) + "e",
            text("names"), test::global("collections", "defaultdict") + ")R" + text("a") + "Ns", text("state_dict"),
            dict({text("a"), tensor(storage("0", 2), 0, {2}, {1})})});
  check_values(value, {floats(2), floats(3)}, {{0, 1}});
  const Contents contents = File(torch_zip(value, {floats(2), floats(3)}).bytes()).open().contents();
  std::vector<std::string> lines;
  for (const Leaf& leaf : contents.leaves) lines.push_back(joined(leaf.path) + ": " + describe(leaf));
  CHECK(lines == std::vector<std::string>{"args: <argparse.Namespace>, not read", "class: <timm.models.ViT>, not read",
                                          "set: <__builtin__.set>, not read", "type: <torch.float16>, not read",
                                          "device: <torch.device>, not read", "queue: <collections.deque>, not read",
                                          "names: <collections.defaultdict>, not read"});
}

TEST_CASE("classes that tensors could be are no opaque values") {
  const std::string of_model = test::global("torch.nn.modules.linear", "Linear") + ")\x81}b";
  check_both_refused(of_model, {}, "\"torch.nn.modules.linear.Linear\"");
  check_both_refused(dict({text("args"), test::global("my", "Net") + ")\x81" + dict({text("fc"), of_model}) + "b"}), {},
                     "\"torch.nn.modules.linear.Linear\"");
  check_both_refused(test::call(test::global("torch._utils", "_rebuild_qtensor"), {}), {}, "_rebuild_qtensor");
  check_both_refused(test::global("torch", "load"), {}, "\"torch.load\"");
  check_both_refused(test::ordered_dict() + "Na", {}, "is no list");
  check_both_refused(tensor(storage("0", 6), 0, {6}, {1}) + "Na", {floats(6)}, "is no list");
}

TEST_CASE("a safetensors file is one whatever the length of its header") {
  for (const size_t length : {128, 640, 0x4B50}) {
    std::string header = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
    header.resize(length, ' ');
    CHECK(File(test::little_endian(uint64_t{length}) + header + floats(1)).values() ==
          std::vector<std::vector<float>>{{0}});
  }
}

TEST_CASE("a safetensors file that ends too early may be cut off") {
  const auto open_with = [](const std::string& offsets) {
    const std::string header = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":)" + offsets + "}}";
    File(test::little_endian(uint64_t{header.size()}) + header + floats(1)).open();
  };
  CHECK_THROWS_WITH(open_with("[0,8]"), EndsWith("not a range within the 4 bytes of data; the file may be cut off"));
  CHECK_THROWS_WITH(open_with("[8,0]"), EndsWith("not a range within the 4 bytes of data"));
}

TEST_CASE("a long header takes time in proportion") {
  std::string header = "{";
  for (int i = 0; i < 100'000; ++i) {
    header += (i == 0 ? "\"" : ",\"") + std::to_string(i) + R"(":{"dtype":"F32","shape":[0],"data_offsets":[0,0]})";
  }
  header += "}";
  const auto start = std::chrono::steady_clock::now();
  CHECK(File(test::little_endian(uint64_t{header.size()}) + header).open().contents().tensors.size() == 100'000);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(60));  // it was hours
}

TEST_CASE("what is often taken for a file of weights is named") {
  check_torch_file_refused("<!DOCTYPE html><html>404</html>", "a web page");
  check_torch_file_refused("version https://git-lfs.github.com/spec/v1", "a pointer of Git LFS");
}

TEST_CASE("what a pickle asks for is refused by its name, and not run") {
  const test::TemporaryFolder folder;
  const std::string mark = (folder / "was_here").string();
  const std::string evil = test::call(test::global("posix", "system"), {text("touch " + mark)});
  check_both_refused(dict({text("a"), evil}), {}, "it asks for \"posix.system\"");
  check_both_refused(evil + "0" + dict({}), {}, "it asks for \"posix.system\"");  // dropped, once it has run
  check_both_refused(text("os") + text("system") + "\x93" + test::tuple({text("touch " + mark)}) + "R", {},
                     "it asks for \"os.system\"");
  CHECK_FALSE(std::filesystem::exists(mark));
  check_both_refused(dict({text("args"), test::global("argparse", "Namespace") + ")\x81" + evil + "b"}), {},
                     "it asks for \"posix.system\"");  // in the state of an opaque value, which Python would make first
  for (const auto& [module, name] : {std::pair{"builtins", "eval"},
                                     {"__builtin__", "getattr"},
                                     {"subprocess", "Popen"},
                                     {"importlib", "import_module"},
                                     {"os.path", "join"}}) {
    check_both_refused(test::global(module, name), {}, std::string("\"") + module + "." + name + "\"");
  }
  check_both_refused(test::global("torch", "ComplexFloatStorage"), {}, "\"torch.ComplexFloatStorage\"");
  check_both_refused(test::global("torch", "FloatStorage"), {}, "is the class or function \"torch.FloatStorage\"");
  check_both_refused(test::call(test::global("torch", "FloatStorage"), {}), {}, "a call that makes no tensor");
  check_both_refused(storage("0", 6), {floats(6)}, "is a storage without a tensor");
  check_both_refused(tensor(storage("0", 6), 0, {6}, {1}) + "}b", {floats(6)}, "sets the state of something");
  check_both_refused(tensor(storage("0", 6), 0, {6}, {1}) + text("a") + "Ns", {floats(6)}, "items are set of a tensor");
  check_both_refused(dict({text("a"), "N", text("a"), "N"}), {}, "key \"a\" comes twice");
  check_both_refused(dict({"N", "N"}), {}, "neither a text nor an integer");
  check_both_refused("\x8a\x09" + std::string(9, '\x7f'), {}, "an integer beyond 64 bits");
  check_both_refused(test::tuple({text("module"), "N", text("x.py"), text("class X: pass")}) + "Q", {},
                     "a whole module");
}

TEST_CASE("zip archives that torch.save did not write are refused") {
  check_torch_file_refused("", "it is empty");
  check_torch_file_refused("hello", "neither safetensors nor what torch.save writes");
  check_torch_file_refused(test::ZipBytes().add({"a/b.txt", "x"}).bytes(), "there is no data.pkl in it");
  check_torch_file_refused(torch_zip("}", {}).add({"other/data.pkl", "x"}).bytes(), "more than one data.pkl");
  check_torch_file_refused(torch_zip("}", {}).add({"archive/constants.pkl", "x"}).bytes(), "a TorchScript program");
  check_torch_file_refused(torch_zip("}", {}).add({"archive/byteorder", "big"}).bytes(), "byte order is \"big\"");
  CHECK_NOTHROW(File(torch_zip("}", {}).add({"archive/byteorder", "little"}).bytes()).open());
  check_torch_file_refused(test::pickle("}"), "none that torch.save wrote");
}

TEST_CASE("a storage that is damaged is found when it is read") {
  std::string bytes = torch_zip(one_tensor(0, {6}, {1}), {floats(6)}).bytes();
  bytes[bytes.find(floats(6)) + 3] ^= 1;
  const File file(bytes);
  CHECK_THROWS_WITH(file.values(), Contains("it is damaged"));
}

TEST_CASE("every cut of the golden files is refused") {
  const std::filesystem::path golden =
      std::filesystem::path(std::getenv("SETTRAIN_SOURCE_DIR")) / "tests/golden/weights";
  const test::TemporaryFolder folder;
  for (const char* name : {"tiny_zip_protocol4.pth", "tiny_legacy.pth", "tiny.safetensors"}) {
    const std::string bytes = test::read_file(golden / name);
    REQUIRE(bytes.size() > 1000);
    for (size_t size = 0; size < bytes.size(); ++size) {
      folder.write("cut", std::span(bytes).first(size));
      CHECK_FALSE(is_readable(folder / "cut"));
    }
  }
}

TEST_CASE("random damage to the golden files is refused or harmless") {
  const std::filesystem::path golden =
      std::filesystem::path(std::getenv("SETTRAIN_SOURCE_DIR")) / "tests/golden/weights";
  const test::TemporaryFolder folder;
  std::mt19937 random(1);
  for (const char* name : {"mixed_zip.pth", "mixed_legacy.pth", "run_epoch_model_optimizer.tar", "mixed.safetensors"}) {
    const std::string bytes = test::read_file(golden / name);
    REQUIRE(bytes.size() > 1000);
    int refused = 0;
    for (int round = 0; round < 1000; ++round) {
      std::string damaged = bytes;
      for (uint32_t changes = 1 + random() % 3; changes > 0; --changes) {
        damaged[random() % damaged.size()] = static_cast<char>(random());
      }
      folder.write("damaged", damaged);
      refused += is_readable(folder / "damaged") ? 0 : 1;
    }
    CHECK(refused > 300);
  }
}

TEST_CASE("names and texts of a file are shown in printable ASCII") {
  CHECK(displayed("conv1.weight") == "conv1.weight");
  CHECK(displayed("a\x7f") == "\"a\\u007f\"");  // the one control character that JSON leaves as it is
  const std::string cut = displayed("\n" + std::string(121, ':'));  // as long as the plain name in quotes would be
  CHECK(cut.starts_with("\"\\n:"));
  CHECK(shown("\x1b[2J") == "\"\\u001b[2J\"");
  CHECK(shown("\xff") == "\"\\ufffd\"");
}

}  // namespace settrain
