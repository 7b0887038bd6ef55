# shellcheck shell=bash disable=SC2034,SC2154
# What the machine with the GPU has, and what it lacks. For scripts/gpu_check.sh.

missing=()
python=python3
torch='<torch>' torch_version='' gpu='' capability='' nvcc='nvcc' sanitizer=compute-sanitizer
programs='' why_none='' settrain='' tests='' library_path=''

find_torch() {
  local candidate answer why='there is no python3'
  for candidate in "${SETTRAIN_PYTHON:-}" python3 "$(chosen python)"; do
    if [[ -z $candidate ]] || ! command -v "$candidate" >/dev/null; then continue; fi
    answer=$("$candidate" - 2>/dev/null <<'END'
import warnings
warnings.simplefilter("ignore")
import torch
print(torch.__path__[0], torch.__version__, sep="\n")
if torch.cuda.is_available():
    print(torch.cuda.get_device_name(), "%d%d" % torch.cuda.get_device_capability(), sep="\n")
END
    ) || { why="$(command -v "$candidate") says: $("$candidate" -c 'import torch' 2>&1 >/dev/null | tail -n 1 || true)" && continue; }
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
  if [[ -z $nvcc ]]; then nvcc=$(CUDACXX=$(chosen nvcc) machine_nvcc); fi # scripts/setup installed it
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
  if [[ -n $torch_version ]] && ! has_cuda_libraries; then
    missing+=("CUDA's libraries: no libtorch_cuda.so in PyTorch, or no libcudnn.so.9, neither in nvidia/cudnn/lib beside it nor where the system has its libraries")
  fi
}

find_bundle() {
  if [[ ! -f $bundle/commit ]]; then
    missing+=("the third-party libraries: no $bundle (scripts/gpu_check.sh pack on another machine makes it)")
  fi
}

# has_cuda_libraries: whether CMake will find LibTorch's and cuDNN's. A PyTorch set up for the CPU alone may have libtorch_cuda.so too.
has_cuda_libraries() {
  local folder
  if [[ ! -f $torch/lib/libtorch_cuda.so ]]; then return 1; fi
  for folder in "$(dirname "$torch")/nvidia/cudnn/lib" /usr/local/cuda/lib64 /usr/lib /usr/lib/*-linux-gnu /usr/local/lib; do
    if [[ -f $folder/libcudnn.so.9 ]]; then return; fi
  done
  return 1
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

# find_programs now | later: those built here, or else those that were packed; they must be of this source, for this GPU, and start.
# Sets `programs` to "built", "packed" or "none", and `why_none`.
find_programs() {
  programs=none
  why_none=
  settrain=$work/build/apps/settrain/settrain
  tests=$work/build/tests
  if [[ -x $settrain ]]; then
    if is_built; then
      programs=built
      return
    fi
    why_none='those that were built are of another source or GPU, or their build was not finished; '
  fi
  if [[ -x $bundle/programs/bin/settrain ]]; then
    if [[ $(cat "$bundle/programs/source" 2>/dev/null) != "$(source_digest)" ]]; then
      why_none+='those that were packed are of another source; '
    elif packed_start; then
      programs=packed
      settrain=$bundle/programs/bin/settrain
      tests=$bundle/programs/bin
      return
    fi
  fi
  library_path=
  if [[ $1 == now ]]; then missing+=("the programs: ${why_none}run scripts/gpu_check.sh build first"); fi
}

# is_built: whether a build of this source, for this GPU or for all, was finished here.
is_built() {
  local source='' for_gpu=''
  if [[ -f $work/build/source ]]; then read -r source for_gpu <"$work/build/source" || true; fi
  [[ $source == "$(source_digest)" && ($for_gpu == all || $for_gpu == "$capability") ]]
}

# packed_start: whether the packed programs start here. Sets library_path, and adds to why_none.
packed_start() {
  local folders=("$torch/lib" "$(dirname "$torch")"/nvidia/*/lib "$bundle"/lib/*-linux-gnu* "$bundle/programs/lib") said
  library_path=$(IFS=:; echo "${folders[*]}")
  if said=$({ in_programs_place "$bundle/programs/bin/settrain" --version &&
    in_programs_place "$bundle/programs/bin/tests_${gpu_tests[0]}" --list-tags; } 2>&1); then
    return
  fi
  why_none+="those that were packed do not start here (${said##*$'\n'}); "
  return 1
}

in_programs_place() { SETTRAIN_SOURCE_DIR=$root LD_LIBRARY_PATH=$library_path${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} "$@" </dev/null; }

# stop_if_missing: tells all that is missing, at once.
stop_if_missing() {
  local what
  for what in "${missing[@]}"; do say "missing: $what"; done
  if ((${#missing[@]})) && ! $dry_run; then exit 1; fi
}
