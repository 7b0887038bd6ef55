// The exceptions of settrain. Nothing below apps/ calls exit or abort; apps/settrain maps these to exit codes.
#pragma once

#include <stdexcept>
#include <string>

namespace settrain {

/// Base of every error that a user can meet. The message is complete: what, where, and what to do.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The configuration or the command line is wrong (exit code 2).
class ConfigError : public Error {
 public:
  using Error::Error;
};

/// A value that turns out to be wrong once data or model are known, thrown where the configuration is not at hand.
class KeyError : public ConfigError {
 public:
  /// `path`: "data.val_size".
  KeyError(const std::string& path, const std::string& message)
      : ConfigError(path + ": " + message), path_(path), message_(message) {}

  const std::string& path() const { return path_; }
  const std::string& message() const { return message_; }

 private:
  std::string path_, message_;
};

/// A data set is missing, corrupt, or not what it claims to be.
class DataError : public Error {
 public:
  using Error::Error;
};

/// A tensor does not have the shape, dtype or value range that a function takes.
class ShapeError : public Error {
 public:
  using Error::Error;
};

/// A run folder or checkpoint cannot be created, read or written.
class RunError : public Error {
 public:
  using Error::Error;
};

/// Another process of the same training is missing, hangs, or has ended.
class ParallelError : public Error {
 public:
  using Error::Error;
};

/// An error that all processes of a training throw alike, so that it is enough if the first one reports it.
class AgreedError : public Error {
 public:
  using Error::Error;
};

/// Training met a value that is not finite.
class NumericalError : public Error {
 public:
  using Error::Error;
};

}  // namespace settrain
