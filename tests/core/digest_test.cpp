#include "src/core/digest.h"

#include <string>

#include "src/core/error.h"
#include "tests/support/catch2.h"
#include "tests/support/temporary_folder.h"

using namespace settrain;

// The examples of FIPS 180-4's publisher.
TEST_CASE("SHA-256 agrees with published examples") {
  CHECK(sha256("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256(std::string(1000000, 'a')) == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// The test suite of RFC 1321.
TEST_CASE("MD5 agrees with published examples") {
  CHECK(Md5().hex() == "d41d8cd98f00b204e9800998ecf8427e");
  CHECK(Md5().add("abc").hex() == "900150983cd24fb0d6963f7d28e17f72");
  CHECK(Md5().add("message ").add("digest").hex() == "f96b697d7cb7938d525a2f31aaf161d0");
}

TEST_CASE("a digest does not depend on how the bytes were cut") {
  CHECK(Sha256().add("a").add("").add("bc").hex() == sha256("abc"));
}

TEST_CASE("a file's digest is that of its content") {
  const test::TemporaryFolder folder;
  const std::string content(3000001, 'x');
  CHECK(sha256_of_file(folder.write("file", content)) == sha256(content));
  CHECK_THROWS_WITH(sha256_of_file(folder / "absent"), Catch::Contains("absent"));
  CHECK_THROWS_AS(sha256_of_file(folder.path()), DataError);
}
