# What scripts/gpu_check.sh packs, what it says where something is missing, and the table it makes of its steps. Nothing is compiled:
# the programs are stand-ins.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder"/{bin,scripts,tests,losses/kernels}
cp -r "$SETTRAIN_SOURCE_DIR"/scripts/{gpu_check.sh,gpu_check,common.sh} "$folder/scripts"
touch "$folder/losses/kernels/noise.cu"
for name in losses train core studies/one; do
  mkdir -p "$folder/tests/$name/ops"
  echo "  settrain_tests($name LINK settrain_core)" >>"$folder/tests/CMakeLists.txt"
done
echo 'TEST_CASE("one", "[gpu]") {}' | tee "$folder"/tests/{losses/ops,studies/one}/one_gpu_test.cpp >"$folder/tests/train/two_gpu_test.cpp"
echo 'TEST_CASE("two") {}' >"$folder/tests/core/three_test.cpp"
for tool in sleep bash cat cut date dirname basename readlink sed env grep xargs sort awk nproc head tail tee mkdir rm cp mv find timeout git sha256sum; do
  ln -s "$(command -v $tool)" "$folder/bin/$tool"
done
work=$folder/build/gpu_check

# stand_in FILE BODY
stand_in() {
  mkdir -p "$(dirname "$folder/$1")"
  printf '#!/usr/bin/env bash\n%s\n' "$2" >"$folder/$1"
  chmod +x "$folder/$1"
}

fail() {
  printf '%s\n' "$@"
  exit 1
}

# expect STATUS TEXT ARGS...: scripts/gpu_check.sh ARGS exits with STATUS and says TEXT.
expect() {
  local status=0
  output=$(env -i HOME="$folder" PATH="$folder/bin" CXX=g++ CUDACXX="$folder/bin/nvcc" \
    bash "$folder/scripts/gpu_check.sh" "${@:3}" 2>&1) || status=$?
  if [[ $status != "$1" || $output != *"$2"* ]]; then
    fail "gpu_check.sh ${*:3}: expected exit code $1 and \"$2\", got $status and:" "$output"
  fi
}

# also TEXT...: the last output says this too.
also() {
  local text
  for text in "$@"; do if [[ $output != *"$text"* ]]; then fail "no \"$text\" in:" "$output"; fi; done
}

expect 0 'Usage: scripts/gpu_check.sh' --help
expect 2 "unknown argument '--gpu'" --gpu
expect 2 "unknown command 'bench'" bench
expect 1 '--limit takes a whole number' --limit soon
expect 1 '--time takes a whole number' --time 0

# A bare machine: everything that is missing, at once.
stand_in bin/python3 'exit 1'
expect 1 'missing: PyTorch: no python3 that can import torch'
if [[ ! -x /usr/local/cuda/bin/nvcc ]]; then also 'missing: nvcc 13'; fi
also 'missing: a C++ compiler: no g++' 'missing: ninja' 'missing: CMake' 'missing: the third-party libraries'
expect 1 'missing: the programs: run scripts/gpu_check.sh build first' run

# With everything but a GPU.
mkdir -p "$folder"/opt/{nvidia/{nccl/include,cudnn/lib},torch/lib}
torch() { stand_in bin/python3 "printf '%s\n' $folder/opt/torch 2.11.0+cu130 $1"; }
torch ''
stand_in bin/nvcc 'echo "Cuda compilation tools, release 13.0, V13.0.88"'
stand_in bin/g++ ''
stand_in bin/cmake 'if [[ $1 == --version ]]; then echo "cmake version 3.24.1"; fi'
stand_in bin/ninja 'echo "[1/1] Linking"'
mkdir -p "$work/bundle/lib/x86_64-linux-gnu"
echo 0123456789abcdef >"$work/bundle/commit"
expect 1 'missing: CMake 3.25 or later: it is 3.24.1' build
if [[ ! -f /usr/include/nccl.h && ! -f /usr/local/include/nccl.h && ! -f /usr/local/cuda/include/nccl.h ]]; then
  also 'missing: nccl.h'
fi
stand_in bin/cmake 'if [[ $1 == --version ]]; then echo "cmake version 4.0.2"; fi'
touch "$folder/opt/nvidia/nccl/include/nccl.h"
expect 1 "missing: CUDA's libraries" build
touch "$folder/opt/nvidia/cudnn/lib/libcudnn.so.9" "$folder/opt/torch/lib/libtorch_cuda.so"
expect 1 'missing: a GPU: no NVIDIA GPU that PyTorch 2.11.0+cu130 sees; nor is there nvidia-smi'
stand_in bin/nvidia-smi 'echo "No devices were found"'
expect 1 'nvidia-smi says: No devices were found'

# What it would do.
expect 0 "cmake -S $folder -B $work/build -G Ninja" --dry-run --sanitize
also 'missing: a GPU' 'missing: compute-sanitizer' "-D CMAKE_PREFIX_PATH=$work/bundle -D CMAKE_LIBRARY_ARCHITECTURE=x86_64-linux-gnu" \
  "-D SETTRAIN_TORCH_ROOT=$folder/opt/torch -D SETTRAIN_CUDA=ON" '-D SETTRAIN_IMAGE_FILES=OFF -D SETTRAIN_ONNX=OFF' \
  'settrain tests_losses tests_studies_one tests_train' "tests/tests_losses '[gpu]'" 'compute-sanitizer --tool memcheck' \
  'compute-sanitizer --tool racecheck' "tests/tests_losses '[gpu]~[capture]'" 'settrain check losses --device cuda' 'settrain bench metrics --device cuda' 'settrain bench loader' \
  'trainings.py quickstart' 'trainings.py resume' '--model resnet50 --batch 256 --precision bf16 --compile default'
if [[ $output == *tests_core* || -e $work/results || -e $work/logs ]]; then fail 'a dry run left files, or names tests_core:' "$output"; fi

# With a GPU: builds, runs, and tells what went wrong.
torch "'NVIDIA H100 80GB HBM3' 90"
mkdir -p "$work/build" && touch "$work/build/build.ninja"
expect 0 'Linking' build
expect 0 'can be built: settrain tests_losses tests_studies_one tests_train' configure
stand_in build/gpu_check/build/apps/settrain/settrain 'case "$1 $2" in
  "check "*) echo "3 of 3 rows passed" ;;
  "bench losses") printf "loss ms\nnoised_topk   0.125  1.50\nlegend\ntime of the device, forward and backward  us\nnoised_topk  7.5\nsmoothed_topk_hinge  5\ndivide and conquer, their backward    1000  10  8\nsmoothed_topk_hinge 1000 0.5 0.1\n" ;;
  "bench train") printf "one, cached   1234.5   6.78\nloader / cached 0.990 (median)\n" ;;
  "bench loader") printf "  8 threads  100 1\n  16 threads   200 2\n" ;;
  "bench metrics") echo "[bench] the GPU is on fire" && exit 1 ;;
esac'
stand_in build/gpu_check/build/tests/tests_losses 'echo "All tests passed (9 assertions in 2 test cases)"'
# The Python that torch() stands in for also runs the comparisons and the trainings.
stand_in bin/python3 'case "$*" in
  *" losses "*) ;;
  *bench_against_python*) printf "settrain, contiguous   1500.0  1\nratio settrain / PyTorch (contiguous): median 1.750, 95\nratio settrain / torch.compile, default: median 1.012, 95\n" ;;
  *resume*) echo "74 of 75 tensors"; exit 1 ;;
  *trainings*) echo "cuda - cpu +0.0010, tolerance 0.0050" ;;
  *) printf "%s\n" '"$folder"'/opt/torch 2.11.0+cu130 "NVIDIA H100 80GB HBM3" 90 ;;
esac'
ln -s tests_losses "$folder/build/gpu_check/build/tests/tests_studies_one"
stand_in build/gpu_check/build/tests/tests_train 'echo "[skipped] no CUDA device"; exit 77'
expect 1 'settrain 0123456789ab on NVIDIA H100 80GB HBM3; PyTorch 2.11.0+cu130' run
# row NAME RESULT FIGURE
row() {
  if ! grep -qE "^$1 +$2 +[0-9]+  $3\$" <<<"$output"; then fail "no row $1, $2, $3 in:" "$output"; fi
}
row tests_train FAILED 'skipped: no CUDA device'
row tests_losses ok 'All tests passed \(9 assertions in 2 test cases\)'
row check_models ok '3 of 3 rows passed'
row bench_losses below 'noised_topk 0.125 ms, 1.50 x cross-entropy; below: noised_topk_us 7.5 \(wanted <= 6\), smoothed_topk_hinge_us 5 \(wanted <= 8\), hinge_over_its_papers 30 \(wanted >= 20\)'
row pairs_losses FAILED 'figures are missing in what it printed: '
row bench_metrics FAILED 'exit code 1: \[bench\] the GPU is on fire'
row bench_train_synthetic ok '1234.5 images/s, 6.78 ms a step, loader / cached 0.990'
row pairs_resnet20 ok '1500.0 images/s, contiguous; over_eager 1.75 \(wanted >= 1.5\), over_compiled 1.012 \(wanted >= 1.0\)'
row pairs_densenet40_40 below '1500.0 images/s, contiguous; .*, below: epoch_of_cifar100_s 33.33 \(wanted <= 10\)'
row resume FAILED 'exit code 1: 74 of 75 tensors'
row bench_loader ok '200 images/s on 16 threads'
grep -q 'rows passed' "$work/logs/check.log" || fail 'check.log lacks what was printed'

expect 1 "there is no step 'bench_speed', but there are: tests_losses tests_studies_one tests_train check_losses" run bench_speed
stand_in build/gpu_check/build/tests/tests_train 'sleep 60'
expect 1 "stopped after 1 s (the step's limit)" --limit 1 run tests_train
# What a step started ends with it.
stand_in build/gpu_check/build/tests/tests_train "(trap '' TERM; sleep 3.21; echo alive >$folder/alive) & sleep 60"
expect 1 "stopped after 1 s (the step's limit)" --limit 1 run tests_train
sleep 3
if [[ -e $folder/alive ]]; then fail 'a process that a step started outlives it'; fi
# A program that cannot be started is no result.
stand_in build/gpu_check/build/tests/tests_train 'echo "tests_train: error while loading shared libraries: libfmt.so.9"; exit 127'
sed -i '/^tests_train\t/d' "$work/results.tsv"
expect 1 'tests_train: its program could not be started, which is no result: tests_train: error while loading' resume
stand_in build/gpu_check/build/tests/tests_train 'echo "No tests ran"'
expect 1 'no test passed: No tests ran' run tests_train
stand_in build/gpu_check/build/tests/tests_train 'echo "All tests passed (1 assertion in 1 test case)"'
stand_in bin/python3 'case "$*" in
  *" losses "*) echo "ratio settrain / pytopk in speed, N(0, 3^2), epsilon 0.2: median 12.5, 95" ;;
  *) printf "%s\n" '"$folder"'/opt/torch 2.11.0+cu130 "NVIDIA H100 80GB HBM3" 90 ;;
esac'
sed -i -E '/^(tests_train|bench_metrics|resume|pairs_losses)\t/d' "$work/results.tsv"
stand_in build/gpu_check/build/apps/settrain/settrain 'printf "  at::sort of all values  207 33 9 MiB\n  at::topk of each row  4 6 9 KiB\nthe whole evaluation      8.50    -\n"'
expect 0 'the whole evaluation 8.50 ms; thresholds_over_sort 33 (wanted >= 5), evaluation_over_sorts 24.8' resume
row pairs_losses ok '; over_pytopk 12.5 \(wanted >= 10\)'
row check_models ok '3 of 3 rows passed'
also '[gpu_check] 4 steps, about '
expect 0 'tests_train                ok' table
expect 0 '[gpu_check] 0 steps, about 0 minutes' resume
sed -i '/^tests_train\t/d' "$work/results.tsv"
expect 0 '[gpu_check] 1 step, about 1 minute (' resume

# Two calls of a time that does not fit all steps, and another machine between them, which gets the results alone.
not_run() { grep -qE "^$1 +- +-  not run\$" <<<"$output" || fail "$1 has a result:" "$output"; }
rm -r "$work/logs" "$work/results.tsv"
expect 0 '[gpu_check] quickstart: left for the next call' --time 50 resume
row tests_losses ok 'All tests passed \(9 assertions in 2 test cases\)'
not_run quickstart
mv "$work/logs/results.tsv" "$work/results.tsv"
rm -r "$work/logs"
expect 1 '[gpu_check] quickstart: ok' --time 600 resume
if [[ $output == *'[gpu_check] tests_losses'* ]]; then fail 'a step that had a result was run again:' "$output"; fi
row tests_losses ok 'All tests passed \(9 assertions in 2 test cases\)'

# A step that this call's end stops is left for the next call, where it comes first; stopped there too, it has failed. Results of another
# GPU are put aside; those of another source are older.
stand_in build/gpu_check/build/tests/tests_train 'sleep 60'
sed -i '/^tests_\(train\|losses\)\t/d' "$work/results.tsv"
sed -i 's/tests_\$name" tests 40/tests_$name" tests 1/' "$folder/scripts/gpu_check/steps.sh"
expect 1 'tests_train: stopped at the end of this call, and left for the next' --time 3 resume
not_run tests_train
expect 1 'tests_train: FAILED' --time 3 resume
row tests_train FAILED 'stopped after [1-3] s \(--time\)'
row bench_loader ok '.*'
echo '#' >>"$folder/tests/core/three_test.cpp"
expect 1 'settrain 0123456789ab on NVIDIA H100 80GB HBM3; PyTorch' table
row tests_losses older 'older source: ok; All tests passed .*'
row bench_loader ok '.*'
echo '#' >>"$folder/losses/kernels/noise.cu"
expect 0 'settrain 0123456789ab on NVIDIA H100 80GB HBM3; PyTorch' table
row bench_loader older 'older source: ok; .*'
expect 1 'missing: the programs: those that were built are of another source or GPU, or their build was not finished; run' resume
expect 0 Linking build
torch "'NVIDIA B200' 100"
expect 1 'those that were built are of another source or GPU' resume
expect 0 Linking build
expect 0 'are of another GPU or PyTorch (settrain on NVIDIA H100 80GB HBM3; PyTorch 2.11.0+cu130), and are kept in' --time 1 resume
not_run bench_loader
stand_in bin/ninja 'echo "[1/2] Compiling"; exit 1'
expect 1 'the build failed' build
expect 1 'or their build was not finished' resume

# Packed programs of this source save the build; those of another do not.
mkdir -p "$work/bundle/programs/bin"
mv "$work/build/apps/settrain/settrain" "$work/build/tests/"* "$work/bundle/programs/bin"
echo 0123 >"$work/bundle/programs/source"
expect 1 'missing: the programs: those that were packed are of another source; run scripts/gpu_check.sh build first' resume
digest=$(cd "$folder" && { find CMakeLists.txt apps configs datasets losses metrics models src scripts/cmake python tests -type f -print0 2>/dev/null || true; } |
  LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum | cut -c 1-12)
echo "$digest" >"$work/bundle/programs/source"
stand_in build/gpu_check/bundle/programs/bin/settrain 'echo "version GLIBC_2.40 not found" && exit 1'
expect 1 'those that were packed do not start here (version GLIBC_2.40 not found); run scripts/gpu_check.sh build first' resume
stand_in bin/ninja 'echo "[1/1] Linking"'
stand_in bin/cmake 'if [[ $1 == --version ]]; then echo "cmake version 4.0.2"; fi'
expect 1 'do not start here (version GLIBC_2.40 not found); they are built now' --time 30 # and the stand-ins are gone
rm "$work/build/source"
stand_in build/gpu_check/bundle/programs/bin/settrain '[[ $LD_LIBRARY_PATH == *opt/torch/lib* ]]'
expect 0 '[gpu_check] tests_losses: ok' run tests_losses

# A test case that captures a CUDA graph says so by its tag, which keeps it out of the sanitizer's steps.
untagged() {
  awk -v captures='capture_begin|cuda_graph_capture|measure_device_times' '
    function done() { if (title && does && title !~ /\[capture\]/) print FILENAME ": " title }
    /^TEST_CASE\(/ { done(); title = ""; does = 0; in_title = 1 }
    in_title { title = title $0; if (/\{$/) in_title = 0 }
    !in_title && $0 ~ captures { does = 1 }
    END { done() }' "$1"
}
printf '%s\n' 'TEST_CASE("a",' '          "[gpu]") {' '  graph.capture_begin();' '}' 'TEST_CASE("b", "[gpu][capture]") {' '  capture_begin();' '}' >"$folder/cases.cpp"
[[ $(untagged "$folder/cases.cpp") == *'TEST_CASE("a",'* && $(untagged "$folder/cases.cpp") != *'"b"'* ]] || fail 'untagged cases are not found'
grep -lrF '[gpu]' "$SETTRAIN_SOURCE_DIR/tests" --include='*.cpp' | while read -r file; do untagged "$file"; done >"$folder/untagged"
if [[ -s $folder/untagged ]]; then fail 'these capture a CUDA graph and are not tagged [capture]:' "$(<"$folder/untagged")"; fi

# A signal ends the step in hand and all that it started.
stand_in build/gpu_check/bundle/programs/bin/tests_train "(trap '' TERM; sleep 2.5; echo alive >$folder/alive) & echo >$folder/begun; sleep 60"
env -i HOME="$folder" PATH="$folder/bin" bash "$folder/scripts/gpu_check.sh" run tests_train >"$folder/said" 2>&1 &
script=$!
for ((i = 0; i < 200; ++i)); do if [[ ! -e $folder/begun ]]; then sleep 0.05; fi; done
kill -TERM "$script"
status=0
wait "$script" || status=$?
[[ $status == 143 ]] || fail "exit code $status where it got SIGTERM:" "$(<"$folder/said")"
sleep 2.6
if [[ -e $folder/alive ]]; then fail 'a process of a step outlives SIGTERM'; fi

# Packing, where the source is a git clone on a machine with the packages.
if ! command -v dpkg-query >/dev/null || ! git -C "$SETTRAIN_SOURCE_DIR" rev-parse HEAD >/dev/null 2>&1; then exit 77; fi
packing() { SETTRAIN_GPU_CHECK=$folder/packed "$SETTRAIN_SOURCE_DIR/scripts/gpu_check.sh" "$@" 2>&1; }
packing pack --without-programs "$folder/all.tar.gz" >"$folder/said" || fail 'pack failed:' "$(<"$folder/said")"
most=$((64 * 1024 * 1024))
if (($(gzip -dc "$folder/all.tar.gz" | wc -c) > most)); then fail "the archive holds more than 64 MiB"; fi
tar -tzf "$folder/all.tar.gz" >"$folder/list"
for file in CMakeLists.txt scripts/gpu_check.sh scripts/gpu_check/steps.sh configs/quickstart.yaml tests/golden/metrics.json \
  build/gpu_check/bundle/{commit,include/{yaml-cpp/yaml.h,spdlog/spdlog.h,fmt/format.h,CLI/CLI.hpp,nlohmann/json.hpp}} \
  build/gpu_check/bundle/include/{zlib.h,zconf.h,openssl/{evp,configuration}.h} \
  build/gpu_check/bundle/share/javascript/chart.js/chart.min.js; do
  grep -qxF "settrain/$file" "$folder/list" || fail "the archive lacks $file"
done
grep -qE '^settrain/build/gpu_check/bundle/include/catch2/catch(_all)?\.hpp$' "$folder/list" || fail 'the archive lacks Catch2'
for library in libyaml-cpp.so libfmt.so libspdlog.so libcrypto.a libz.a; do
  grep -q "^settrain/build/gpu_check/bundle/lib/.*/$library" "$folder/list" || fail "the archive lacks $library"
done
if grep -E 'opencv|gdal|libjpeg|libpng|libtiff|libwebp' "$folder/list" | grep -v 'settrain/\(scripts\|docs\|datasets\|tests\)/'; then fail 'the archive holds image codecs'; fi
if find "$folder/packed/bundle" -xtype l | grep .; then fail 'those links lead nowhere'; fi
