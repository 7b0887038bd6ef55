# shellcheck shell=bash disable=SC2034,SC2154
# What the machine with the GPU has, and what it lacks. For scripts/gpu_check.sh.

missing=()
python=python3
torch='<torch>' torch_version='' gpu='' capability='' nvcc='nvcc' sanitizer=compute-sanitizer
programs='' settrain='' tests='' library_path=''

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
  if ! has_nccl_header; then
    missing+=("nccl.h: neither beside PyTorch, in nvidia/nccl/include, nor in /usr/include, /usr/local/include or /usr/local/cuda/include")
  fi
  if [[ ! -f $bundle/commit ]]; then
    missing+=("the third-party libraries: no $bundle (scripts/gpu_check.sh pack on another machine makes it)")
  fi
}

# has_nccl_header: whether CMake will find it (scripts/cmake/LibTorch.cmake). Without PyTorch nothing is known of it.
has_nccl_header() {
  local folder
  for folder in "$(dirname "$torch")/nvidia/nccl/include" /usr/include /usr/local/include /usr/local/cuda/include; do
    if [[ -f $folder/nccl.h ]]; then return; fi
  done
  [[ -z $torch_version ]]
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

# find_programs now | later: those built here, or else those that were packed, of this source. Sets `programs` to "built" or "packed".
find_programs() {
  programs=built
  settrain=$work/build/apps/settrain/settrain
  tests=$work/build/tests
  if [[ -x $settrain ]]; then return; fi
  local why=
  if [[ -x $bundle/programs/bin/settrain ]]; then
    if [[ $(<"$bundle/programs/source") == "$(source_digest)" ]]; then
      programs=packed
      settrain=$bundle/programs/bin/settrain
      tests=$bundle/programs/bin
      local folders=("$torch/lib" "$(dirname "$torch")"/nvidia/*/lib "$bundle"/lib/*-linux-gnu*)
      library_path=$(IFS=:; echo "${folders[*]}")
      return
    fi
    why='those that were packed are of another source; '
  fi
  if [[ $1 == now ]]; then missing+=("the programs: ${why}run scripts/gpu_check.sh build first"); fi
}

# stop_if_missing: tells all that is missing, at once.
stop_if_missing() {
  local what
  for what in "${missing[@]}"; do say "missing: $what"; done
  if ((${#missing[@]})) && ! $dry_run; then exit 1; fi
}
