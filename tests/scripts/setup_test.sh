# What scripts/setup says and does where it cannot install. Nothing is installed here: PATH holds stand-ins and a few tools.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/bin" "$folder/scripts"
cp "$SETTRAIN_SOURCE_DIR"/scripts/{setup,common.sh} "$folder/scripts"
for tool in bash sh cat dirname readlink sed env; do ln -s "$(command -v $tool)" "$folder/bin/$tool"; done

# stand_in NAME BODY
stand_in() {
  printf '#!/bin/sh\n%s\n' "$2" >"$folder/bin/$1"
  chmod +x "$folder/bin/$1"
}

# expect STATUS TEXT ARGS...: scripts/setup ARGS exits with STATUS and says TEXT.
expect() {
  local status=0 output
  output=$(env -i HOME="$folder" PATH="$folder/bin" ${torch:+SETTRAIN_TORCH_ROOT="$torch"} \
    bash "$folder/scripts/setup" "${@:3}" 2>&1) || status=$?
  if [[ $status != "$1" || $output != *"$2"* ]]; then
    printf 'setup %s: expected exit code %s and "%s", got %s and:\n%s\n' "${*:3}" "$1" "$2" "$status" "$output"
    exit 1
  fi
}

expect 0 'Usage: scripts/setup' --help
expect 2 "unknown argument '--gpu'" --gpu

# An ordinary user, nothing installed but g++.
stand_in id 'echo 1000'
stand_in dpkg-query 'printf "g++=installed cmake=not-installed "; exit 1'
expect 1 'an administrator must run: apt-get update && apt-get install -y --no-install-recommends cmake ninja-build' --cpu
missing=$(env -i HOME="$folder" PATH="$folder/bin" bash "$folder/scripts/setup" --cpu 2>&1) || true
if [[ $missing == *catch2* || $missing == *chromium* || $missing == *clang* ]]; then
  printf 'setup --cpu asks for what tests and CI need:\n%s\n' "$missing"
  exit 1
fi
expect 1 'catch2' --cpu --tests
expect 1 'clang-format' --cpu --ci

# With sudo: it says what it installs, asks sudo, and where that is refused gives the same line.
stand_in sudo "echo \"asked: \$*\"; exit 1"
expect 1 'installing these Debian packages: cmake ' --cpu
expect 1 'asked: env DEBIAN_FRONTEND=noninteractive sh -c apt-get update && apt-get install' --cpu
expect 1 'an administrator must run: apt-get update' --cpu

# Everything installed, and a PyTorch of one's own that is none.
stand_in dpkg-query 'shift 3; for package; do printf "%s=installed " "$package"; done'
torch=$folder/nowhere
expect 1 "SETTRAIN_TORCH_ROOT='$folder/nowhere' holds no LibTorch" --cpu

# The driver decides between CPU and CUDA, not the compiler.
stand_in nvcc 'echo "Cuda compilation tools, release 13.0, V13.0.88"'
if [[ ! -e /proc/driver/nvidia/version ]]; then expect 1 'building for the CPU: no NVIDIA driver is there'; fi
stand_in nvidia-smi 'echo "GPU 0"'
expect 1 'building for CUDA: an NVIDIA driver is there'

if [[ -e $folder/.cache || -e $folder/build ]]; then
  echo 'scripts/setup left files although it failed'
  exit 1
fi
