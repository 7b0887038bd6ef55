#!/usr/bin/env bash
# Builds, tests and measures settrain on a machine with an NVIDIA GPU and no network. See --help.
set -euo pipefail
source "$(dirname "$(readlink -f "$0")")/common.sh"
say() { printf '[gpu_check] %s\n' "$*" >&2; }

work=${SETTRAIN_GPU_CHECK:-$root/build/gpu_check}
bundle=$work/bundle
results=$work/results
logs=${OUT:-$work/logs}
# What the build needs beside LibTorch, without what decodes image files (Debian's libraries for that drag in hundreds of MB).
packages=(libyaml-cpp-dev libspdlog-dev libfmt-dev libcli11-dev catch2 nlohmann-json3-dev zlib1g-dev libssl-dev libjs-chart.js)
most_bytes=$((64 * 1024 * 1024))

usage() {
  cat <<END
Usage: scripts/gpu_check.sh [--dry-run] [--sanitize] [--limit N] [COMMAND]

Builds settrain on a machine that has an NVIDIA GPU, nvcc 13, CMake, ninja, g++ and a Python with PyTorch, but neither a network nor
Debian packages; runs the tests tagged [gpu], \`settrain check\` and the benches there; and prints one table.

On a machine where scripts/setup ran:
  pack [FILE]      packs the source, as committed, and the third-party headers and libraries, below 64 MiB, into FILE
                   (default: build/gpu_check/settrain.tar.gz); unpack it on the other machine. In a tree that is there already,
                   the folder build/gpu_check/bundle is enough.
    --with-programs  also the programs, where \`scripts/gpu_check.sh build\` was run before; then the other machine may skip
                   its build

On the machine with the GPU:
  (none)           build, then run
  build            builds what is needed; may be interrupted and goes on where it was
  run [STEP...]    runs all steps, or these, and prints the table; exit code 1 where one has failed
  resume           runs the steps that have not been run since the build
  table            prints the table again

  --dry-run        says what is missing, and prints the commands instead of running them
  --sanitize       also runs the tests of the CUDA kernels under compute-sanitizer's memcheck, as steps memcheck_*
  --limit N        the most seconds a step may take; default 300
  --help           this text

A test that is skipped on that machine counts as failed. No image files can be decoded in this build: data sets are synthetic, CIFAR-100
and Fashion-MNIST.

Environment: OUT                 folder for the logs and the table, in place of build/gpu_check/logs
             SETTRAIN_PYTHON     the Python that has PyTorch, in place of python3
             SETTRAIN_GPU_CHECK  in place of the folder build/gpu_check
             CUDACXX             nvcc, where it is neither on the PATH nor in /usr/local/cuda
             CMAKE_BUILD_PARALLEL_LEVEL  compilers at once; default: as many as cores and memory allow
END
}

dry_run=false
sanitize=false
with_programs=false
limit=300
command=
arguments=()
while (($#)); do
  case $1 in
    --dry-run) dry_run=true ;;
    --sanitize) sanitize=true ;;
    --with-programs) with_programs=true ;;
    --limit)
      if [[ ! ${2:-} =~ ^[1-9][0-9]*$ ]]; then fail "--limit takes a whole number of seconds, from 1"; fi
      limit=$2
      shift
      ;;
    --help | -h)
      usage
      exit
      ;;
    -*)
      say "unknown argument '$1'"
      usage >&2
      exit 2
      ;;
    *) if [[ -z $command ]]; then command=$1; else arguments+=("$1"); fi ;;
  esac
  shift
done

# print_command COMMAND...: as the shell would read it.
print_command() {
  local word line=
  for word in "$@"; do
    if [[ $word =~ [^A-Za-z0-9_./=:+-] ]]; then word=${word@Q}; fi
    line+="$word "
  done
  echo "${line% }"
}

source_commit() {
  { [[ -e $root/.git ]] && git -C "$root" rev-parse HEAD 2>/dev/null; } || cat "$bundle/commit" 2>/dev/null || echo 'an unknown commit'
}

# The folders of tests/ with tests tagged [gpu]; each is a program tests_<folder>.
mapfile -t gpu_tests < <(grep -rlF '[gpu]' "$root/tests" --include='*_test.cpp' | xargs -r -n 1 dirname | xargs -r -n 1 basename | sort -u)

# --- Packing

# packed_files: what of the packages goes into the bundle.
packed_files() {
  local file
  dpkg-query -L "${packages[@]}" | sort -u | while IFS= read -r file; do
    case $file in
      /usr/share/doc/*/copyright) echo "$file" ;;
      /usr/share/doc/*) ;;
      /usr/include/*) if [[ ! -d $file ]]; then echo "$file"; fi ;;
      *.cmake | */chart.min.js | */libcrypto.a | */libz.a | */libCatch2WithMain.a) echo "$file" ;;
      */libyaml-cpp.so | */libfmt.so | */libspdlog.so) printf '%s\n' "$file"* ;; # the library and its links
    esac
  done
}

pack() {
  local archive=${1:-$work/settrain.tar.gz} package missing=() bytes name
  if ! command -v dpkg-query >/dev/null; then fail "pack gathers Debian's packages, and there is no dpkg-query here"; fi
  for package in "${packages[@]}"; do
    if ! dpkg-query -L "$package" >/dev/null 2>&1; then missing+=("$package"); fi
  done
  if ((${#missing[@]})); then fail "not installed: ${missing[*]}; scripts/setup installs them"; fi
  git -C "$root" rev-parse HEAD >/dev/null 2>&1 || fail "pack takes the source from git, and $root is no clone"
  if $with_programs && [[ ! -x $work/build/apps/settrain/settrain ]]; then
    fail "--with-programs needs those that scripts/gpu_check.sh build makes"
  fi
  if $dry_run; then
    packed_files
    return
  fi
  if [[ -n $(git -C "$root" status --porcelain) ]]; then say "what is not committed stays behind"; fi

  mkdir -p "$work" "$(dirname "$archive")"
  rm -rf "$bundle"
  mkdir "$bundle"
  # Headers that Debian keeps apart for each architecture go with the others.
  packed_files | tar -C / --create --files-from=<(sed 's,^/,,') --transform 's,^usr/,,;s,^include/[^/]*-linux-gnu[^/]*/,include/,' |
    tar -C "$bundle" --extract
  git -C "$root" rev-parse HEAD >"$bundle/commit"
  if $with_programs; then
    cmake --install "$work/build" --prefix "$bundle/programs" --strip >/dev/null
    for name in "${gpu_tests[@]}"; do strip -o "$bundle/programs/bin/tests_$name" "$work/build/tests/tests_$name"; done
  fi

  local tar_file
  tar_file=$(mktemp "$work/archive.XXXXXX")
  git -C "$root" archive --prefix=settrain/ HEAD >"$tar_file"
  tar -C "$work" --append --file "$tar_file" --transform 's,^bundle,settrain/build/gpu_check/bundle,' bundle
  bytes=$(stat -c %s "$tar_file")
  gzip -c "$tar_file" >"$archive"
  rm "$tar_file"
  if ((bytes > most_bytes)); then fail "source and bundle are $(in_mib "$bytes") unpacked, more than the 64 MiB meant"; fi
  echo "$archive: $(in_mib "$(stat -c %s "$archive")"), $(in_mib "$bytes") unpacked; without the source: $bundle"
}

in_mib() { awk -v bytes="$1" 'BEGIN {printf "%.1f MiB", bytes / 1048576}'; }

# --- What the machine has

missing=()
python=
torch='<torch>' torch_version='' gpu='' capability='' nvcc='nvcc' programs=''

find_torch() {
  local candidate answer why='there is no python3'
  for candidate in "${SETTRAIN_PYTHON:-}" python3 "$(chosen python)"; do
    if [[ -z $candidate ]] || ! command -v "$candidate" >/dev/null; then continue; fi
    answer=$("$candidate" - 2>&1 <<'END'
import warnings
warnings.simplefilter("ignore")
import torch
print(torch.__path__[0], torch.__version__, sep="\n")
if torch.cuda.is_available():
    print(torch.cuda.get_device_name(), "%d%d" % torch.cuda.get_device_capability(), sep="\n")
END
    ) || { why="$(command -v "$candidate") says: ${answer##*$'\n'}" && continue; }
    python=$candidate
    { read -r torch && read -r torch_version && read -r gpu && read -r capability; } <<<"$answer" || true
    if [[ $torch_version != 2.11.* ]]; then say "PyTorch is $torch_version; settrain is made for 2.11"; fi
    return
  done
  missing+=("PyTorch: no python3 that can import torch (SETTRAIN_PYTHON names another one); $why")
}

find_compilers() {
  local version
  nvcc=$(machine_nvcc)
  if [[ -z $nvcc ]]; then
    nvcc=nvcc
    missing+=("nvcc 13: neither on the PATH nor in /usr/local/cuda (CUDACXX names another one)")
  fi
  command -v "${CXX:-c++}" >/dev/null || missing+=("a C++ compiler: no ${CXX:-c++}")
  command -v ninja >/dev/null || missing+=("ninja")
  version=$(cmake --version 2>/dev/null | sed -n 's/^cmake version //p' || true)
  if [[ -z $version ]]; then
    missing+=("CMake")
  elif [[ $(printf '%s\n' 3.25 "$version" | sort -V | head -n 1) != 3.25 ]]; then
    missing+=("CMake 3.25 or later: it is $version")
  fi
  if [[ ! -f $bundle/commit ]]; then
    missing+=("the third-party libraries: no $bundle (scripts/gpu_check.sh pack on another machine makes it)")
  fi
}

find_gpu() {
  if [[ -n $gpu || -z $torch_version ]]; then return; fi
  local driver='nor is there nvidia-smi'
  if command -v nvidia-smi >/dev/null; then driver="nvidia-smi says: $(nvidia-smi -L 2>&1 | head -n 1 || true)"; fi
  missing+=("a GPU: no NVIDIA GPU that PyTorch $torch_version sees; $driver")
}

find_sanitizer() {
  sanitizer=$(command -v compute-sanitizer "$(dirname "$nvcc")/compute-sanitizer" /usr/local/cuda/bin/compute-sanitizer | head -n 1 || true)
  if [[ -z $sanitizer ]]; then
    sanitizer=compute-sanitizer
    missing+=("compute-sanitizer, for --sanitize")
  fi
}

# find_programs: those built here, or else those that were packed.
find_programs() {
  programs=$work/build
  settrain=$programs/apps/settrain/settrain
  tests=$programs/tests
  if [[ ! -x $settrain && -x $bundle/programs/bin/settrain ]]; then
    settrain=$bundle/programs/bin/settrain
    tests=$bundle/programs/bin
    local folders=("$torch/lib" "$(dirname "$torch")"/nvidia/*/lib "$bundle"/lib/*-linux-gnu*)
    library_path=$(IFS=:; echo "${folders[*]}")
  elif [[ ! -x $settrain && $1 != later ]]; then
    missing+=("the programs: run scripts/gpu_check.sh build first")
  fi
}

# stop_if_missing: tells all that is missing, at once.
stop_if_missing() {
  local what
  for what in "${missing[@]}"; do say "missing: $what"; done
  if ((${#missing[@]})) && ! $dry_run; then exit 1; fi
}

# --- Building

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
    -D SETTRAIN_IMAGE_FILES=OFF -D SETTRAIN_WARNINGS_ARE_ERRORS=OFF "${options[@]}" ||
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

# --- Running

# record STEP RESULT SECONDS FIGURE
record() { printf '%s\t%s\t%s\n' "$2" "$3" "$4" >"$results/$1"; }

# each_step DO: runs `DO NAME LOG COMMAND...` for every step.
each_step() {
  local do=$1 name
  for name in "${gpu_tests[@]}"; do "$do" "tests_$name" tests "$tests/tests_$name" '[gpu]'; done
  if $sanitize; then
    for name in "${gpu_tests[@]}"; do
      if [[ -z $(find "$root/$name" "$root/src/$name" -name '*.cu' 2>/dev/null) ]]; then continue; fi
      # Without LibTorch's cache of memory, so that each tensor has bounds of its own.
      "$do" "memcheck_$name" memcheck env PYTORCH_NO_CUDA_MEMORY_CACHING=1 "$sanitizer" --tool memcheck --error-exitcode 86 \
        "$tests/tests_$name" '[gpu]'
    done
  fi
  for name in losses metrics models; do "$do" "check_$name" check "$settrain" check "$name" --device cuda; done
  for name in losses metrics; do "$do" "bench_$name" bench "$settrain" bench "$name" --device cuda; done
  local train=("$settrain" bench train --device cuda)
  "$do" bench_train_resnet20 bench "${train[@]}" --model resnet20 --batch 128
  "$do" bench_train_densenet40_40 bench "${train[@]}" --model densenet40_40 --batch 64
  "$do" bench_train_resnet50 bench "${train[@]}" --model resnet50 --batch 64
  "$do" bench_train_resnet50_bf16 bench "${train[@]}" --model resnet50 --batch 64 --set train.precision=bf16
  "$do" bench_train_synthetic bench "${train[@]}" --config synthetic_long_tail.yaml # the loader too
  "$do" bench_loader bench "$settrain" bench loader synthetic_long_tail.yaml
}

# headline STEP FILE: the figure of a step that passed, from what it printed.
headline() {
  case $1 in
    bench_losses) awk '$1 == "noised_topk" {print "noised_topk " $2 " ms, " $3 " x cross-entropy"; exit}' "$2" ;;
    bench_train_*)
      awk '/^one, cached/ {printf "%s images/s, %s ms a step", $3, $4}
           /^loader \/ cached/ {printf ", loader / cached %s", $4} END {print ""}' "$2"
      ;;
    bench_loader) awk '$2 == "threads" {n = $1; speed = $3} END {print speed " images/s on " n " threads"}' "$2" ;;
    bench_metrics) sed -n 's/^the whole evaluation  *\([0-9.]*\).*/the whole evaluation \1 ms/p' "$2" ;;
    memcheck_*) sed -n 's/^=* *\(ERROR SUMMARY.*\)/\1/p' "$2" | tail -n 1 ;;
    *) last_line "$2" ;;
  esac
}

last_line() { grep -v '^[[:space:]=]*$' "$1" | tail -n 1 || true; }

# run_step NAME LOG COMMAND...
run_step() {
  local name=$1 log=$logs/$2.log status=0 start=$SECONDS result=ok figure
  if $dry_run; then
    print_command "${@:3}"
    return
  fi
  say "$name"
  timeout --foreground -k 10 "$limit" "${@:3}" >"$work/output" 2>&1 </dev/null || status=$?
  { printf '\n=== %s: %s\n' "$name" "${*:3}" && cat "$work/output"; } >>"$log"
  figure=$(headline "$name" "$work/output")
  case $status in
    0) ;;
    77) result=FAILED figure="skipped: $(grep -F '[skipped]' "$work/output" | head -n 1 | cut -d ' ' -f 2- || true)" ;;
    124 | 137) result=FAILED figure="stopped after $limit s (--limit)" ;;
    *) result=FAILED figure="exit code $status: $(last_line "$work/output")" ;;
  esac
  if [[ $result == ok && $name == tests_* ]] && ! grep -q 'All tests passed' "$work/output"; then
    result=FAILED figure="no test passed: $(last_line "$work/output")"
  fi
  record "$name" "$result" $((SECONDS - start)) "${figure:0:160}"
  say "$name: $result, $((SECONDS - start)) s"
}

# run_if_wanted NAME LOG COMMAND...: of the steps, those in `wanted`: names, all, or unrecorded.
run_if_wanted() {
  case " ${wanted[*]} " in
    *' all '* | *" $1 "*) run_step "$@" ;;
    *' unrecorded '*) if [[ ! -f $results/$1 ]]; then run_step "$@"; fi ;;
  esac
}

print_name() { echo "$1"; }

# run_steps all | unrecorded | NAME...
run_steps() {
  local wanted=("$@") name known
  known=$(each_step print_name)
  for name in "$@"; do
    if ! grep -qxF -- "$name" <<<"$known"$'\nall\nunrecorded'; then
      fail "there is no step '$name', but there are: ${known//$'\n'/ }"
    fi
  done
  export SETTRAIN_SOURCE_DIR=$root SETTRAIN_PROGRAM=$settrain SETTRAIN_PYTHON=$python
  if [[ -n $library_path ]]; then export LD_LIBRARY_PATH=$library_path${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}; fi
  if ! $dry_run; then
    mkdir -p "$results" "$logs"
    if [[ $1 == all ]]; then rm -f "$logs"/{tests,memcheck,check,bench}.log; fi
  fi
  each_step run_if_wanted
}

print_row() {
  local result=- seconds=- figure='not run'
  if [[ -f $results/$1 ]]; then IFS=$'\t' read -r result seconds figure <"$results/$1"; fi
  printf '%-26s %-7s %7s  %s\n' "$1" "$result" "$seconds" "$figure"
}

print_table() {
  printf 'settrain %s on %s; PyTorch %s\n\n' "$(source_commit | cut -c 1-12)" "${gpu:-no GPU}" "${torch_version:-not found}"
  printf '%-26s %-7s %7s  %s\n' step result seconds figure
  print_row build
  each_step print_row
}

# finish: the table; exit code 1 where a step has failed.
finish() {
  local status=0
  if $dry_run; then return; fi
  mkdir -p "$logs"
  print_table >"$logs/table.txt"
  echo && cat "$logs/table.txt"
  if grep -q '^[a-z0-9_]* *FAILED ' "$logs/table.txt"; then status=1; fi
  say "logs: $logs"
  exit $status
}

library_path='' settrain='' tests='' sanitizer=compute-sanitizer
case ${command:-all} in
  pack)
    pack "${arguments[@]}"
    exit
    ;;
  all | build | run | resume | table) ;;
  *)
    say "unknown command '$command'"
    usage >&2
    exit 2
    ;;
esac
find_torch
if [[ ${command:-all} == all || $command == build ]]; then find_compilers; fi
if [[ $command != build && $command != table ]]; then find_gpu; fi
if $sanitize; then find_sanitizer; fi
if [[ $command == run || $command == resume ]]; then find_programs now; else find_programs later; fi
if [[ $command != table ]]; then stop_if_missing; fi
case ${command:-all} in
  all)
    build_here
    find_programs now
    run_steps all
    finish
    ;;
  build) build_here ;;
  run)
    if ((${#arguments[@]})); then run_steps "${arguments[@]}"; else run_steps all; fi
    finish
    ;;
  resume)
    run_steps unrecorded
    finish
    ;;
  table) finish ;;
esac
