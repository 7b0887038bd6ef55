#!/usr/bin/env bash
# shellcheck disable=SC2034
# Builds, tests and measures settrain on a machine with an NVIDIA GPU and no network. See --help.
set -euo pipefail
source "$(dirname "$(readlink -f "$0")")/common.sh"
say() { printf '[gpu_check] %s\n' "$*" >&2; }

work=${SETTRAIN_GPU_CHECK:-$root/build/gpu_check}
bundle=$work/bundle
results=$work/results
logs=${OUT:-$work/logs}

usage() {
  cat <<END
Usage: scripts/gpu_check.sh [--dry-run] [--sanitize] [--limit N] [COMMAND]

Builds settrain on a machine that has an NVIDIA GPU, nvcc 13, CMake, ninja, g++ and a Python with PyTorch, but neither a network nor
Debian packages; runs the tests tagged [gpu], \`settrain check\`, short trainings and the benches there, also beside Python's PyTorch; and
prints one table, in which "below" marks a figure that falls short of what is wanted.

On a machine where scripts/setup ran:
  pack [FILE]      packs the source, as committed, and the third-party headers and libraries, below 64 MiB, into FILE
                   (default: build/gpu_check/settrain.tar.gz); unpack it on the other machine. In a tree that is there already,
                   the folder build/gpu_check/bundle is enough.
    --with-programs  also the programs, where \`scripts/gpu_check.sh build\` was run before; then the other machine may skip
                   its build
    --with-data      also Fashion-MNIST's files, for the step quickstart, which takes synthetic images without them

On the machine with the GPU:
  (none)           build, then run
  build            builds what is needed; may be interrupted and goes on where it was
  run [STEP...]    runs all steps, or these, and prints the table; exit code 1 where one has failed
  resume           runs the steps that have not been run since the build
  table            prints the table again

  --dry-run        says what is missing, and prints the commands instead of running them
  --sanitize       also runs the tests of the CUDA kernels under compute-sanitizer's memcheck and racecheck, as steps of those names
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
with_data=false
limit=300
command=
arguments=()
while (($#)); do
  case $1 in
    --dry-run) dry_run=true ;;
    --sanitize) sanitize=true ;;
    --with-programs) with_programs=true ;;
    --with-data) with_data=true ;;
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

# The programs tests_<name> that have tests tagged [gpu]: of the folders that tests/CMakeLists.txt makes programs of.
mapfile -t gpu_tests < <(cd "$root/tests" && sed -n 's/^ *settrain_tests(\([^ )]*\).*/\1/p' CMakeLists.txt | while read -r folder; do
  if grep -rqF '[gpu]' "$folder" --include='*_test.cpp'; then echo "${folder//\//_}"; fi
done | sort)

# shellcheck disable=SC1090
for part in pack machine build figures steps; do source "$root/scripts/gpu_check/$part.sh"; done

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
