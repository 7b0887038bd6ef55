// Replaces the other files of this folder in a build with SETTRAIN_ONNX=OFF.
#include "src/core/error.h"
#include "src/onnx/write_onnx.h"

namespace settrain {

OnnxFile write_onnx(const std::filesystem::path& /*file*/, Model& /*model*/, const ModelCard& /*card*/,
                    const OnnxOptions& /*options*/) {
  throw Error("this build of settrain writes no ONNX files (CMake option SETTRAIN_ONNX=OFF)");
}

}  // namespace settrain
