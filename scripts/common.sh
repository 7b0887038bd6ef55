# shellcheck shell=bash disable=SC2034
# What scripts/setup, scripts/settrain and scripts/test share. To be sourced.

root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd)
cache=${SETTRAIN_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/settrain}
# Another clone of the same source is built from ccache, files with precompiled headers included.
export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=true CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
choice=$root/build/setup.txt # what scripts/setup chose for this tree: KEY=VALUE lines

say() { printf '[setup] %s\n' "$*" >&2; }
fail() {
  say "$@"
  exit 1
}

# chosen KEY: the value that scripts/setup wrote down, or nothing.
chosen() { if [[ -f $choice ]]; then sed -n "s/^$1=//p" "$choice"; fi; }

# machine_nvcc: the machine's nvcc of CUDA 13, which LibTorch is built with, or nothing.
machine_nvcc() {
  local nvcc
  for nvcc in "${CUDACXX:-}" nvcc /usr/local/cuda/bin/nvcc; do
    if [[ -n $nvcc ]] && "$nvcc" --version 2>/dev/null | grep -q 'release 13\.'; then
      command -v "$nvcc"
      return
    fi
  done
}

# parallel_jobs: how many compilers at once. A file that includes LibTorch's headers takes up to 1.5 GiB.
parallel_jobs() {
  local by_memory
  by_memory=$(awk '/^MemAvailable:/ {print int($2 / 1572864)}' /proc/meminfo)
  echo "${CMAKE_BUILD_PARALLEL_LEVEL:-$((by_memory < 1 ? 1 : by_memory < $(nproc) ? by_memory : $(nproc)))}"
}

# build TARGET...: builds what changed, one build at a time in this tree. Says nothing where nothing changed.
build() {
  local folder lock
  folder=$root/build/$(chosen preset)
  exec {lock}>"$folder/.lock"
  flock "$lock"
  ninja -C "$folder" -j "$(parallel_jobs)" "$@" 2>&1 | show_steps || fail "the build failed (folder $folder)"
  exec {lock}>&- # a training run must not hold it
}

# show_steps: ninja's output on stderr, without the steps of every build; on a terminal the steps share a line.
show_steps() {
  local line width=0 clear=
  if [[ -t 2 ]]; then
    width=$(tput cols 2>/dev/null || echo 80)
    clear=$'\r\e[K'
  fi
  while IFS= read -r line; do
    case $line in
      *'Re-checking globbed directories'* | *"Looking up the source's commit" | 'ninja: no work to do.' | 'ninja: Entering'*) ;;
      '['*) if ((width)); then printf '%s%.*s' "$clear" $((width - 1)) "$line"; else printf '%s\n' "$line"; fi ;;
      *) printf '%s%s\n' "$clear" "$line" ;;
    esac
  done >&2
  printf '%s' "$clear" >&2
}
