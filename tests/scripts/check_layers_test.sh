# scripts/check_layers finds each kind of offence, in a small tree made here, and nothing else.
set -euo pipefail
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

# file PATH LINE...: a source file of these lines.
file() {
  mkdir -p "$tree/$(dirname "$1")"
  printf '%s\n' "${@:2}" >"$tree/$1"
}

# expect STATUS [PLACE...]: check_layers exits with STATUS, and names exactly these places.
expect() {
  local status=0 places
  places=$("$SETTRAIN_SOURCE_DIR/scripts/check_layers" "$tree" 2>/dev/null | cut -d : -f 1,2 | tr '\n' ' ') || status=$?
  if [[ $status != "$1" || $places != "${*:2}${2:+ }" ]]; then
    echo "expected exit code $1 and '${*:2}', got $status and '$places'"
    exit 1
  fi
}

mkdir -p "$tree/docs"
cat >"$tree/docs/architecture.md" <<'END'
| folder | holds | LibTorch |
|---|---|---|
| `src/core` | errors | no |
| `datasets` | images | no |
| `models` | networks | yes |
| `losses/kernels` | loops | no |
| `losses` | losses | yes |
| `src/loader` | batches | yes |
| `src/run_folder` | files of a run | no |
| `apps` | the program | yes |
END
expect 1 # a tree without a source file is a mistake in the call

file src/core/error.h '#pragma once' '#include <string>'
file models/model_output.h '#include <ATen/core/Tensor.h>'
file models/model.h '#include "models/model_output.h"'
file datasets/dataset.h '#include "src/core/error.h"'
file losses/loss.h '#include "models/model_output.h"' 'void register_builtin_losses();'
file src/loader/loader.h '#include "datasets/dataset.h"'
file apps/settrain/main.cpp '#include "losses/loss.h"' 'int main() { register_builtin_losses(); }'
file tests/losses/loss_test.cpp '#include <ATen/ATen.h>' '#include "losses/loss.h"'
expect 0

file src/core/upwards.h '#include "models/model.h"'
expect 1 src/core/upwards.h:1
rm "$tree/src/core/upwards.h"

file models/sideways.cpp '// a comment' '#include "models/model.h"' '#include "losses/loss.h"'
file losses/kernels/up.h '#include "losses/loss.h"'
expect 1 losses/kernels/up.h:1 models/sideways.cpp:3
rm "$tree/models/sideways.cpp" "$tree/losses/kernels/up.h"

file src/core/torch.cpp '#include <c10/core/Device.h>'
file src/loader/slow.cpp '#include <ATen/ATen.h>' '#include <torch/torch.h>'
file src/loader/fmt.cpp '#include <spdlog/spdlog.h>'
expect 1 src/core/torch.cpp:1 src/loader/fmt.cpp:1 src/loader/slow.cpp:1 src/loader/slow.cpp:2
rm "$tree"/src/core/torch.cpp "$tree"/src/loader/*.cpp

file losses/kernels/kernel.cu '#include <cuda_runtime.h>' '#include <ATen/core/Tensor.h>'
file losses/kernels/private.h '#include <cuda_runtime.h>'
file losses/public.h '#pragma once' '#include <cuda_runtime.h>'
expect 1 losses/kernels/kernel.cu:2 losses/kernels/kernel.cu:2 losses/public.h:2 # the kernel: no LibTorch in CUDA files, nor in that folder
rm -r "$tree/losses/kernels" "$tree/losses/public.h"

file src/loader/fill.cpp 'void fill() { register_builtin_losses(); }'
file src/loader/relative.cpp '#include "loader.h"'
file src/somewhere/new.cpp 'int x;'
expect 1 src/loader/fill.cpp:1 src/loader/relative.cpp:1 src/somewhere/new.cpp:1
rm -r "$tree"/src/loader/{fill,relative}.cpp "$tree/src/somewhere"

# What libraries link, and the order in which their folders are added.
file src/core/CMakeLists.txt 'settrain_library(core)'
file models/CMakeLists.txt 'settrain_library(models MODULES LINK settrain_core)'
file losses/CMakeLists.txt 'settrain_library(losses LINK settrain_models)'
file src/run_folder/CMakeLists.txt 'settrain_library(run_folder LINK settrain_core' '  fmt::fmt)'
file CMakeLists.txt 'add_subdirectory(src/core)' 'add_subdirectory(models)' 'if(SETTRAIN_TORCH)' '  add_subdirectory(losses)' 'endif()'
expect 0

file models/CMakeLists.txt 'settrain_library(models MODULES LINK settrain_core settrain_run_folder)'
expect 1 models/CMakeLists.txt:1
file models/CMakeLists.txt 'settrain_library(models MODULES LINK settrain_core)'

file src/run_folder/CMakeLists.txt '' 'settrain_library(run_folder LINK settrain_losses)' # LibTorch behind two others
expect 1 src/run_folder/CMakeLists.txt:2
file src/run_folder/CMakeLists.txt 'settrain_library(run_folder LINK settrain_core)'

file src/run_folder/CMakeLists.txt 'settrain_library(run_folder LINK settrain_core settrain_torch)' # LibTorch by its own name
expect 1 src/run_folder/CMakeLists.txt:1
file src/run_folder/CMakeLists.txt 'settrain_library(run_folder LINK settrain_core)' 'target_link_libraries(settrain_run_folder PRIVATE settrain_losses)'
expect 1 src/run_folder/CMakeLists.txt:1
file models/CMakeLists.txt 'settrain_library(models MODULES)' 'target_link_libraries(settrain_models' '  PRIVATE settrain_run_folder)'
file src/run_folder/CMakeLists.txt 'settrain_library(run_folder LINK settrain_core)'
expect 1 models/CMakeLists.txt:1
file models/CMakeLists.txt 'settrain_library(models MODULES LINK settrain_core)'

file CMakeLists.txt 'add_subdirectory(losses)' 'add_subdirectory(models)'
expect 1 CMakeLists.txt:2
