// An ONNX graph that grows node by node, and its file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace settrain {

/// The version of ONNX's operators that the graphs are written in.
inline constexpr int64_t kOnnxOpset = 17;

/// The types of tensors, by ONNX's own numbers.
enum class OnnxType : int32_t { kFloat32 = 1, kUint8 = 2, kInt32 = 6, kInt64 = 7, kBool = 9, kFloat64 = 11 };

using OnnxAttribute = std::variant<int64_t, float, std::vector<int64_t>>;
using OnnxAttributes = std::map<std::string, OnnxAttribute>;

/// Row-major without gaps. `data` has to be there only for the call.
struct OnnxTensor {
  OnnxType type;
  std::vector<int64_t> shape;
  const void* data;
  size_t bytes;
};

/// Values are known by their names.
class OnnxGraph {
 public:
  OnnxGraph();
  ~OnnxGraph();
  OnnxGraph(OnnxGraph&&) = delete;

  /// The name of the only output of a new node.
  std::string add(const std::string& op, const std::vector<std::string>& inputs, const OnnxAttributes& attributes = {});
  /// The names of the outputs of a node with several.
  std::vector<std::string> add(const std::string& op, const std::vector<std::string>& inputs,
                               const OnnxAttributes& attributes, size_t outputs);

  /// A tensor that is part of the graph. Without a name it gets one.
  std::string constant(const OnnxTensor& tensor, const std::string& name = "");
  std::string constant(const std::vector<int64_t>& values);
  std::string constant(const std::vector<float>& values, const std::vector<int64_t>& shape);
  std::string constant(const std::vector<double>& values, const std::vector<int64_t>& shape);
  /// Numbers without dimensions.
  std::string constant(float value);
  std::string constant(double value);
  std::string constant(int64_t value);

  /// `shape`: -1 is the batch, whose size is open.
  void input(const std::string& name, OnnxType type, const std::vector<int64_t>& shape);
  /// Makes `value` an output called `name`.
  void output(const std::string& name, const std::string& value, OnnxType type, const std::vector<int64_t>& shape);
  /// A text in the file's metadata.
  void fact(const std::string& key, const std::string& value);

  int64_t num_nodes() const;

  /// Throws RunError where the file cannot be written, or would have the 2 GiB that protobuf cannot.
  void write(const std::filesystem::path& file) const;

 private:
  struct Proto;

  std::string fresh(const std::string& kind);

  std::unique_ptr<Proto> proto_;
  int64_t next_ = 0;
};

}  // namespace settrain
