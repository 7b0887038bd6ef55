// A PATH of a test's own, with a gnuplot that is none, or without.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/support/temporary_folder.h"

namespace settrain::test {

/// Until its end, PATH is a folder that holds nothing, or a gnuplot of the shell commands `body`.
class FakeGnuplot {
 public:
  explicit FakeGnuplot(const std::string& body = "") : path_(std::getenv("PATH")) {
    if (!body.empty()) {
      const auto file = folder_.write("gnuplot", "#!/bin/sh\n" + body + "\n");
      std::filesystem::permissions(file, std::filesystem::perms::owner_all);
    }
    ::setenv("PATH", folder_.path().c_str(), 1);
  }
  ~FakeGnuplot() { ::setenv("PATH", path_.c_str(), 1); }
  FakeGnuplot(const FakeGnuplot&) = delete;
  FakeGnuplot& operator=(const FakeGnuplot&) = delete;

 private:
  TemporaryFolder folder_;
  std::string path_;
};

}  // namespace settrain::test
