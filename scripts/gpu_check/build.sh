# shellcheck shell=bash disable=SC2034,SC2154
# The build on the machine with the GPU. For scripts/gpu_check.sh.

built_now=false
targets=(settrain "${gpu_tests[@]/#/tests_}")

configure_here() {
  local options=() architecture
  architecture=$(cd "$bundle/lib" 2>/dev/null && echo *-linux-gnu*) || architecture='<architecture>'
  if [[ -n $capability ]]; then options+=(-D "CMAKE_CUDA_ARCHITECTURES=$capability"); fi
  if command -v ccache >/dev/null; then
    options+=(-D CMAKE_CXX_COMPILER_LAUNCHER=ccache -D CMAKE_CUDA_COMPILER_LAUNCHER=ccache)
  fi
  $dry_run || { mkdir -p "$logs" && rm -f "$logs/build.log"; }
  say "configuring $work/build"
  build_step cmake -S "$root" -B "$work/build" -G Ninja -D CMAKE_BUILD_TYPE=Release -D "CMAKE_PREFIX_PATH=$bundle" \
    -D "CMAKE_LIBRARY_ARCHITECTURE=$architecture" -D "SETTRAIN_TORCH_ROOT=$torch" -D SETTRAIN_CUDA=ON -D "SETTRAIN_NVCC=$nvcc" \
    -D SETTRAIN_IMAGE_FILES=OFF -D SETTRAIN_ONNX=OFF -D SETTRAIN_SERVE=OFF -D SETTRAIN_WARNINGS_ARE_ERRORS=OFF "${options[@]}" ||
    build_failed "CMake failed"
}

# resolve_targets: fails where ninja does not know a target, or cannot make a file that one needs. Compiles nothing.
resolve_targets() {
  if ! $dry_run; then
    # ninja -n resolves nothing while it would first run CMake again, and to look for new files it always would.
    awk '/^build build.ninja:/ {skip = 1} /^$/ {skip = 0} !skip' "$work/build/build.ninja" >"$work/build/resolve.ninja"
  fi
  build_step ninja -C "$work/build" -f resolve.ninja -n "${targets[@]}" || build_failed "a target cannot be built"
  say "can be built: ${targets[*]}"
}

build_here() {
  local start=$SECONDS source
  source=$(source_digest)
  built_now=true
  $dry_run || rm -f "$work/build/source" # it says that the build is whole, and of which source
  configure_here
  say "building with $(parallel_jobs) compilers at once"
  build_step ninja -C "$work/build" -j "$(parallel_jobs)" "${targets[@]}" || build_failed "the build failed"
  if ! $dry_run; then echo "$source ${capability:-all}" >"$work/build/source"; fi
  say "built in $((SECONDS - start)) s"
}

build_failed() { fail "$1; the log is $logs/build.log"; }

# build_step COMMAND...: shows its output and keeps it.
build_step() {
  if $dry_run; then
    print_command "$@"
  else
    "$@" 2>&1 | tee -a "$logs/build.log" | show_steps
  fi
}
