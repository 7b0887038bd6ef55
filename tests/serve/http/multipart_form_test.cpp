#include <fmt/format.h>

#include <string>
#include <vector>

#include "src/serve/http/http_server.h"
#include "tests/support/catch2.h"

using namespace settrain;

namespace {

constexpr const char* kForm = "multipart/form-data; boundary=xyz";

std::string part(const std::string& headers, const std::string& content) {
  return "--xyz\r\n" + headers + "\r\n\r\n" + content + "\r\n";
}

std::string file_part(const std::string& name, const std::string& content) {
  return part("Content-Disposition: form-data; name=\"image\"; filename=\"" + name + "\"\r\nContent-Type: image/png",
              content);
}

// The status and the message of what is refused.
std::string refusal(const std::string& body, const std::string& type = kForm, int64_t most = 3) {
  try {
    find_uploads(body, type, most);
  } catch (const HttpError& error) {
    return std::to_string(error.status()) + " " + error.what();
  }
  return "taken";
}

std::vector<std::string> contents(const std::string& body, const std::string& type = kForm) {
  std::vector<std::string> found;
  for (const Upload& upload : find_uploads(body, type, 16))
    found.push_back(upload.name + "=" + std::string(upload.bytes));
  return found;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("a body that is no form is one image") {
  for (const char* type : {"", "image/jpeg", "application/octet-stream", "text/plain; boundary=xyz",
                           "multipart/form-dataX; boundary=xyz"}) {
    CHECK(contents("--xyz", type) == Names{"the image=--xyz"});
  }
  CHECK(refusal("", "image/png").starts_with("400 the request holds no image"));
}

TEST_CASE("every file of a form is an image, with all its bytes") {
  const std::string binary("\x00\r\n--xy\r\n\xFF--xyz\r\n-", 18);
  const std::string body = "preamble\r\n" + file_part("a.png", binary) +
                           part("Content-Type: image/png\r\nContent-Disposition: form-data; name=b", "2") +
                           part("X: y", "3") + "--xyz--\r\nepilogue";
  CHECK(contents(body) == Names{"'a.png'=" + binary, "'b'=2", "image 3=3"});
  CHECK(contents(body, "Multipart/Form-Data; charset=utf-8; Boundary=\"xyz\"") == contents(body));
}

TEST_CASE("fields beside a file are no images") {
  const std::string file = file_part("a.png", "1"), end = "--xyz--";
  const Names one{"'a.png'=1"};
  for (const char* headers :
       {"Content-Disposition: form-data; name=\"note\"",
        "content-disposition: form-data; name=note\r\nContent-Type: text/plain",
        "Content-Disposition: form-data; name=\"a; filename=b.png\"", "Content-Disposition: form-data; name=\"\"",
        "Content-Disposition: form-data; name=\"a\\\"; filename=\\\"b\"",
        "Content-Disposition: form-data; name=a; filename=\"\""}) {
    CAPTURE(headers);
    CHECK(contents(part(headers, "my photograph") + file + end) == one);
    CHECK(contents(file + part(headers, "") + end) == one);
    CHECK(contents(file + part(headers, "my photograph") + file + end) == Names{one[0], one[0]});
  }
  // Browsers send this for a file input without a file.
  const std::string unchosen = part(
      "Content-Disposition: form-data; name=\"image\"; filename=\"\"\r\nContent-Type: application/octet-stream", "");
  CHECK(contents(unchosen + file + unchosen + end) == one);
  CHECK(refusal(unchosen + end) == "400 the form holds no image");
  // Many fields do not count as images, but there is an end to them.
  std::string fields;
  for (int i = 0; i < 999; ++i) fields += part("Content-Disposition: form-data; name=a", "b");
  CHECK(contents(fields + file + end) == one);
  CHECK(refusal(fields + file + file + end).starts_with("413 "));
}

TEST_CASE("a file is one by its name, or by its type") {
  for (const char* headers : {"Content-Disposition: form-data; name=b; filename=b.png",
                              "Content-Disposition: form-data; filename=\"b.png\"; name=\"b\"",
                              "Content-Disposition: form-data; name=b; filename*=UTF-8''b.png",
                              "Content-Disposition: form-data; NAME=b; FileName=b.png"}) {
    CAPTURE(headers);
    CHECK(find_uploads(file_part("a.png", "1") + part(headers, "2") + "--xyz--", kForm, 2).back().field == "b");
  }
  for (const char* type : {"image/png", "Image/JPEG; x=y", "application/octet-stream"}) {
    const std::string headers = fmt::format("Content-Disposition: form-data; name=b\r\nContent-Type:{}", type);
    CHECK(contents(file_part("a.png", "1") + part(headers, "2") + "--xyz--") == Names{"'a.png'=1", "'b'=2"});
  }
}

TEST_CASE("in a form without files every field is an image") {
  const std::string fields = part("Content-Disposition: form-data; name=\"a\"", "1") +
                             part("Content-Disposition: form-data; name=\"b\"", "2") + "--xyz--";
  CHECK(contents(fields) == Names{"'a'=1", "'b'=2"});
}

TEST_CASE("an error knows the field") {
  const auto field_of = [](const std::string& body) {
    try {
      find_uploads(body, kForm, 3);
    } catch (const HttpError& error) {
      return error.field();
    }
    return std::string("taken");
  };
  CHECK(field_of(file_part("a.png", "") + "--xyz--") == "image");
  CHECK(field_of(part("Content-Disposition: form-data; name=\"a\x1B\"", "") + "--xyz--") == "a?");
  CHECK(field_of(part("X: y", "") + "--xyz--").empty());
}

TEST_CASE("a part may have no headers, and blanks may follow a boundary") {
  CHECK(contents("--xyz \t\r\n\r\none\r\n--xyz--") == Names{"image 1=one"});
}

TEST_CASE("names of files are made fit for a message") {
  CHECK(contents(file_part(R"(a\"b\\c.png)", "1") + "--xyz--") == Names{R"('a"b\c.png'=1)"});
  CHECK(contents(file_part(R"(C:\d\e.png)", "1") + "--xyz--") == Names{R"('C:\d\e.png'=1)"});
  CHECK(contents(file_part("a\x1B[31m;b.png", "1") + "--xyz--") == Names{"'a?[31m;b.png'=1"});
  CHECK(contents(file_part(std::string(5000, 'n'), "1") + "--xyz--") == Names{"'" + std::string(100, 'n') + "'=1"});
}

TEST_CASE("forms that are none are refused with a reason") {
  const std::string one = file_part("a.png", "1");
  CHECK(refusal(one + "--xyz--") == "taken");
  CHECK(refusal(one) == "400 the form cannot be read: it is cut short");
  CHECK(refusal(one + "--xyz") == "400 the form cannot be read: it is cut short");
  CHECK(refusal("--xyz\r\nContent-Type: image/png") == "400 the form cannot be read: a part's headers do not end");
  CHECK(refusal("--xyz\r\n" + std::string(10000, 'h') + "\r\n\r\n1\r\n--xyz--") ==
        "400 the form cannot be read: a part's headers do not end");
  CHECK(refusal("") == "400 the form cannot be read: there is no part in it");
  CHECK(refusal("--other\r\n\r\n1\r\n--other--") == "400 the form cannot be read: there is no part in it");
  CHECK(refusal("--xyz--") == "400 the form holds no image");
  CHECK(refusal(file_part("a.png", "") + "--xyz--") == "400 'a.png' is empty");
  CHECK(refusal(one + one + one + "--xyz--") == "taken");
  CHECK(refusal(one + one + one + one + "--xyz--").starts_with("413 there are more than 3 images"));
  for (const std::string boundary : {"", "; boundary=", "; boundary=\"\"", "; x=boundary"}) {
    CHECK(refusal(one, "multipart/form-data" + boundary).starts_with("400 the form cannot be read: its boundary"));
  }
  CHECK(refusal(one, "multipart/form-data; boundary=" + std::string(71, 'b'))
            .starts_with("400 the form cannot be read: its boundary"));
}
