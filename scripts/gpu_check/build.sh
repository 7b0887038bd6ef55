# shellcheck shell=bash disable=SC2154
# The build on the machine with the GPU. For scripts/gpu_check.sh.

build_here() {
  local targets=(settrain "${gpu_tests[@]/#/tests_}") options=() start=$SECONDS architecture
  architecture=$(cd "$bundle/lib" 2>/dev/null && echo *-linux-gnu*) || architecture='<architecture>'
  if [[ -n $capability ]]; then options+=(-D "CMAKE_CUDA_ARCHITECTURES=$capability"); fi
  if command -v ccache >/dev/null; then
    options+=(-D CMAKE_CXX_COMPILER_LAUNCHER=ccache -D CMAKE_CUDA_COMPILER_LAUNCHER=ccache)
  fi
  $dry_run || { rm -rf "$results" && mkdir -p "$results" "$logs" && rm -f "$logs/build.log"; }
  say "configuring $work/build"
  build_step cmake -S "$root" -B "$work/build" -G Ninja -D CMAKE_BUILD_TYPE=Release -D "CMAKE_PREFIX_PATH=$bundle" \
    -D "CMAKE_LIBRARY_ARCHITECTURE=$architecture" -D "SETTRAIN_TORCH_ROOT=$torch" -D SETTRAIN_CUDA=ON -D "SETTRAIN_NVCC=$nvcc" \
    -D SETTRAIN_IMAGE_FILES=OFF -D SETTRAIN_ONNX=OFF -D SETTRAIN_SERVE=OFF -D SETTRAIN_WARNINGS_ARE_ERRORS=OFF "${options[@]}" ||
    build_failed "CMake failed" "$start"
  say "building with $(parallel_jobs) compilers at once"
  build_step ninja -C "$work/build" -j "$(parallel_jobs)" "${targets[@]}" || build_failed "the build failed" "$start"
  $dry_run || record build ok $((SECONDS - start)) "${targets[*]}"
}

build_failed() {
  record build FAILED $((SECONDS - $2)) "$1"
  fail "$1; the log is $logs/build.log"
}

# build_step COMMAND...: shows its output and keeps it.
build_step() {
  if $dry_run; then
    print_command "$@"
  else
    "$@" 2>&1 | tee -a "$logs/build.log" | show_steps
  fi
}
