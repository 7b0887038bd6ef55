# CMake configures the archive of scripts/gpu_check.sh with nvcc where it is unpacked, without git, and ninja knows how to make every target.
# Nothing is compiled. A machine with a GPU differs in two ways: it builds for its own GPU alone, while here the list of architectures is
# CMake's default; and it may lack Debian's packages, which CMake could find here in place of the packed ones. The archive holds what is
# committed.
set -euo pipefail
skip() {
  echo "[skipped] $*"
  exit 77
}
command -v dpkg-query >/dev/null || skip 'no Debian packages to pack'
git -C "$SETTRAIN_SOURCE_DIR" rev-parse HEAD >/dev/null 2>&1 || skip 'the source is no git clone'
python=${SETTRAIN_PYTHON:-python3}
torch=$("$python" -c 'import importlib.util as u; print(*u.find_spec("torch").submodule_search_locations)' 2>/dev/null) ||
  skip 'no Python with PyTorch (SETTRAIN_PYTHON)'
ls "$torch"/lib/libtorch_cuda.so "$torch"/../nvidia/cudnn/lib/libcudnn.so.9 >/dev/null 2>&1 || skip "PyTorch lacks CUDA's libraries"
nvcc=$(source "$SETTRAIN_SOURCE_DIR/scripts/common.sh" && machine_nvcc)
if [[ -z $nvcc ]]; then nvcc=$(echo "$torch"/../nvidia/cu13/bin/nvcc); fi # where scripts/setup installs it
"$nvcc" --version >/dev/null 2>&1 || skip 'no nvcc 13'

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
SETTRAIN_GPU_CHECK=$folder/packed "$SETTRAIN_SOURCE_DIR/scripts/gpu_check.sh" pack --without-programs "$folder/settrain.tar.gz"
mkdir "$folder/machine"
tar -C "$folder/machine" -xzf "$folder/settrain.tar.gz"
cd "$folder/machine/settrain"
if git rev-parse HEAD 2>/dev/null; then skip 'the folder for temporary files lies in a git clone'; fi
env -u OUT -u SETTRAIN_GPU_CHECK SETTRAIN_PYTHON="$python" CUDACXX="$nvcc" scripts/gpu_check.sh configure
