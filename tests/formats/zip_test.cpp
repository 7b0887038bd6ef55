#include "src/formats/zip.h"

#include "src/core/error.h"
#include "tests/support/catch2.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/weight_bytes.h"

namespace settrain {
namespace {

using Catch::Contains;
using test::little_endian;

class Archive {
 public:
  explicit Archive(const std::string& bytes) { folder_.write("a.zip", bytes); }

  InputFile file() const { return InputFile(folder_ / "a.zip"); }

 private:
  test::TemporaryFolder folder_;
};

void check_directory_refused(const std::string& bytes, const std::string& reason) {
  const Archive archive(bytes);
  const InputFile file = archive.file();
  const auto read_all = [&file] {
    for (const ZipMember& member : read_zip_directory(file)) locate(file, member);
  };
  CHECK_THROWS_WITH(read_all(), Contains("a.zip'") && Contains(reason));
  CHECK_THROWS_AS(read_all(), RunError);
}

std::string replaced(std::string bytes, size_t at, const std::string& by) {
  return bytes.replace(at, by.size(), by);
}

// Archives below: "a" holds 3 bytes at 31, "b" 2 at 65; the directory begins at 67, its entries have 47 bytes.
test::ZipBytes two() {
  return test::ZipBytes().add({"a", "one"}).add({"b", "to"});
}
constexpr size_t kDirectory = 67, kEntry = 47, kEnd = kDirectory + 2 * kEntry;

}  // namespace

TEST_CASE("members are found where they are") {
  const Archive archive(two().bytes());
  const InputFile file = archive.file();
  const auto members = read_zip_directory(file);
  REQUIRE(members.size() == 2);
  CHECK(members[0].name == "a");
  const Storage first = locate(file, members[0]), second = locate(file, members[1]);
  CHECK((first.begin == 31 && first.size == 3));
  CHECK((second.begin == 65 && second.size == 2));
  CHECK_NOTHROW(check_crc(file, first));
}

TEST_CASE("a comment may follow, and an archive may be empty") {
  std::string bytes = two().bytes();
  bytes.replace(bytes.size() - 2, 2, little_endian(uint16_t{5}));
  CHECK(read_zip_directory(Archive(bytes + "hello").file()).size() == 2);
  CHECK(read_zip_directory(Archive(test::ZipBytes().bytes()).file()).empty());
}

TEST_CASE("zip64 records hold for what does not fit in 32 bits") {
  const std::string bytes = two().bytes();
  const std::string none = "\xff\xff\xff\xff";
  // The first entry with its sizes and place in an extra field; the end's numbers in a record of their own.
  const std::string extra = little_endian(uint16_t{1}) + little_endian(uint16_t{24}) + little_endian(uint64_t{3}) +
                            little_endian(uint64_t{3}) + little_endian(uint64_t{0});
  std::string entry = replaced(replaced(bytes.substr(kDirectory, kEntry), 20, none + none), 42, none);
  entry = replaced(entry, 30, little_endian(static_cast<uint16_t>(extra.size())));
  const std::string directory = entry + extra + bytes.substr(kDirectory + kEntry, kEntry);
  const auto record_at = static_cast<uint64_t>(kDirectory + directory.size());
  const std::string record = "PK\x06\x06" + little_endian(uint64_t{44}) + std::string(12, '\0') +
                             little_endian(uint64_t{2}) + little_endian(uint64_t{2}) +
                             little_endian(static_cast<uint64_t>(directory.size())) +
                             little_endian(uint64_t{kDirectory});
  const std::string locator =
      "PK\x06\x07" + std::string(4, '\0') + little_endian(record_at) + little_endian(uint32_t{1});
  const std::string end = replaced(bytes.substr(kEnd), 8, none + none + none);
  const std::string start = bytes.substr(0, kDirectory) + directory;
  const Archive archive(start + record + locator + end);
  const InputFile file = archive.file();
  const auto members = read_zip_directory(file);
  REQUIRE(members.size() == 2);
  CHECK(locate(file, members[0]).begin == 31);
  CHECK(locate(file, members[0]).size == 3);

  check_directory_refused(start + record + replaced(locator, 8, little_endian(~uint64_t{0})) + end,
                          "zip64 record lies outside");
  check_directory_refused(start + replaced(record, 0, "XX") + locator + end, "zip64 record is damaged");
  check_directory_refused(start + replaced(record, 48, little_endian(~uint64_t{0})) + locator + end,
                          "lies outside the file");
  check_directory_refused(start + replaced(record, 40, little_endian(~uint64_t{0})) + locator + end,
                          "lies outside the file");
  check_directory_refused(start + replaced(record, 32, little_endian(uint64_t{1} << 60)) + locator + end,
                          "where it says 1152921504606846976");
  check_directory_refused(
      replaced(start, kDirectory + kEntry + 4, little_endian(~uint64_t{0})) + record + locator + end, "is compressed");
}

TEST_CASE("damaged directories are refused") {
  const std::string bytes = two().bytes();
  check_directory_refused("PK", "cut short");
  for (size_t size = 2; size < bytes.size(); ++size) check_directory_refused(bytes.substr(0, size), "");
  check_directory_refused(replaced(bytes, kDirectory, "XX"), "the directory of its zip archive is damaged");
  check_directory_refused(replaced(bytes, kDirectory + 28, "\xff\xff"), "the directory of its zip archive is damaged");
  check_directory_refused(two().bytes(1), "has 2 members, where it says 3");
  check_directory_refused(two().bytes(0, 1), "");
  check_directory_refused(two().bytes(0, 1'000'000), "lies outside the file");
  check_directory_refused(replaced(bytes, kDirectory + 42, little_endian(uint32_t{1'000'000})),
                          "overlaps what comes after it");
}

TEST_CASE("members that are not what they should be are refused by name") {
  check_directory_refused(test::ZipBytes().add({"a", "one", 8}).bytes(),
                          "member \"a\" of its zip archive is compressed");
  check_directory_refused(test::ZipBytes().add({"a", "one", 0, 1}).bytes(), "is compressed or encrypted");
  check_directory_refused(two().add({"a", ""}).bytes(), "member \"a\" of its zip archive comes twice");
  const std::string bytes = two().bytes();
  check_directory_refused(replaced(bytes, 0, "XX"), "is not where the directory says");
  check_directory_refused(replaced(bytes, 30, "c"), "is not where the directory says");
  check_directory_refused(replaced(bytes, 28, "\xff\x7f"), "is not where the directory says");  // its local extra field
  // Both entries for one place, and sizes that reach into the next member, as in archives that unpack to more than they
  // are.
  check_directory_refused(replaced(bytes, kDirectory + kEntry + 42, little_endian(uint32_t{0})), "overlaps");
  const std::string longer = little_endian(uint32_t{60});
  check_directory_refused(replaced(bytes, kDirectory + 20, longer + longer), "overlaps");
}

TEST_CASE("bytes are compared with their checksum, where there is one") {
  std::string bytes = two().bytes();
  bytes[31] = 'O';
  const Archive archive(bytes);
  const InputFile file = archive.file();
  Storage storage = locate(file, read_zip_directory(file)[0]);
  CHECK_THROWS_WITH(check_crc(file, storage), Contains("it is damaged: the 3 bytes from byte 31"));
  storage.crc = 0;
  CHECK_NOTHROW(check_crc(file, storage));
}

}  // namespace settrain
