#!/usr/bin/env bash
# shellcheck disable=SC2034,SC2154
# Builds, tests and measures settrain on a machine with an NVIDIA GPU and no network. See --help.
set -euo pipefail
source "$(dirname "$(readlink -f "$0")")/common.sh"
say() { printf '[gpu_check] %s\n' "$*" >&2; }

work=${SETTRAIN_GPU_CHECK:-$root/build/gpu_check}
bundle=$work/bundle
results=$work/results.tsv
logs=${OUT:-$work/logs}

usage() {
  cat <<END
Usage: scripts/gpu_check.sh [--dry-run] [--sanitize] [--limit N] [--time N] [COMMAND]

Builds settrain on a machine that has an NVIDIA GPU, nvcc 13, CMake, ninja, g++ and a Python with PyTorch, but neither a network nor
Debian packages; runs the tests tagged [gpu], \`settrain check\`, short trainings and the benches there, also beside Python's PyTorch; and
prints one table, in which "below" marks a figure that falls short of what is wanted. docs/gpu_check.md has the whole in three calls of
under ten minutes.

On a machine where scripts/setup ran:
  pack [FILE]      packs the source, as committed, and the third-party headers and libraries into FILE
                   (default: build/gpu_check/settrain.tar.gz); unpack it on the other machine. In a tree that is there already,
                   the folder build/gpu_check/bundle is enough.
                   Where this machine has nvcc, it builds the programs first and packs them too: then the other machine need not
                   build, if its C library is not older
    --without-programs  never the programs
    --with-data      also Fashion-MNIST's files (30 MB), for the step quickstart, which else takes synthetic images

On the machine with the GPU:
  (none)           build, where there are no packed programs; then resume
  configure        configures the build, and finds out whether it knows every target and source file; needs no GPU
  build            builds what is needed; may be interrupted and goes on where it was
  resume           runs the steps that have no result yet, and prints the table; exit code 1 where one has failed
  run [STEP...]    runs all steps, or these, again
  table            prints the table again

  --dry-run        says what is missing, and prints the commands instead of running them
  --sanitize       also runs the tests of the CUDA kernels under compute-sanitizer's memcheck and racecheck, as steps of those names
  --limit N        the most seconds a step may take; default: three times the guess, from 60 to 540
  --time N         the most seconds the steps of this call may take together: those that do not fit are left for the next
  --help           this text

Results are kept in build/gpu_check/results.tsv, and beside the logs. On another machine put that file there again, and resume goes on
where it was. It is of one kind of GPU: with another one it is put aside under another name. Each result belongs to the files that its step
depends on; where those have changed, the table calls it older, and resume runs the step again.

A test that is skipped on that machine counts as failed. No image files can be decoded in this build: data sets are synthetic, CIFAR-100
and Fashion-MNIST.

Environment: OUT                 folder for the logs, the table and results.tsv, in place of build/gpu_check/logs
             SETTRAIN_PYTHON     the Python that has PyTorch, in place of python3
             SETTRAIN_GPU_CHECK  in place of the folder build/gpu_check
             CUDACXX             nvcc, where it is neither on the PATH nor in /usr/local/cuda
             CMAKE_BUILD_PARALLEL_LEVEL  compilers at once; default: as many as cores and memory allow
END
}

dry_run=false
sanitize=false
with_programs=true
with_data=false
limit=
time_left=
command=
arguments=()
while (($#)); do
  case $1 in
    --dry-run) dry_run=true ;;
    --sanitize) sanitize=true ;;
    --without-programs) with_programs=false ;;
    --with-data) with_data=true ;;
    --limit | --time)
      if [[ ! ${2:-} =~ ^[1-9][0-9]*$ ]]; then fail "$1 takes a whole number of seconds, from 1"; fi
      if [[ $1 == --limit ]]; then limit=$2; else time_left=$2; fi
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

code=(CMakeLists.txt apps configs datasets losses metrics models src scripts/cmake)

# digest_of ROOT PATH...: of all files there, committed or not. A path may be missing.
digest_of() {
  (cd "$1" && { find "${@:2}" -type f ! -name '*.pyc' -print0 2>/dev/null || true; } | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum | cut -c 1-12)
}

# source_digest [ROOT]: of all files that the programs are built from.
source_digest() { digest_of "${1:-$root}" "${code[@]}" python tests; }

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
  all | configure | build | run | resume | table) ;;
  *)
    say "unknown command '$command'"
    usage >&2
    exit 2
    ;;
esac
find_torch
if [[ $command == run || $command == resume ]]; then find_programs now; else find_programs later; fi
case ${command:-all} in
  all) if [[ $programs == none ]]; then find_compilers && find_bundle; fi ;;
  configure | build) find_compilers && find_bundle ;;
esac
if [[ $command != configure && $command != build && $command != table ]]; then find_gpu; fi
if $sanitize; then find_sanitizer; fi
if [[ $command != table ]]; then stop_if_missing; fi
case ${command:-all} in
  all)
    if [[ $programs == none ]]; then
      say "${why_none:-there are no programs yet; }they are built now"
      build_here
    fi
    run_steps unrecorded
    finish
    ;;
  configure) configure_here && resolve_targets ;;
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
