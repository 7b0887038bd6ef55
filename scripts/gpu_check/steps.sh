# shellcheck shell=bash disable=SC2034,SC2154
# The steps that are run there, and the table of their results. For scripts/gpu_check.sh.

# --- Results: a file of lines "STEP RESULT SECONDS FIGURE DIGEST", separated by tabs, below a line that names the GPU. Several machines of
# one kind may have added to it, one after the other. DIGEST: of the files and the command line that the step depends on.

results_head() { echo "settrain on ${gpu:-no GPU}; PyTorch ${torch_version:-not found}"; }

# results_of HEAD: where the results of that GPU are put aside.
results_of() { echo "$work/results-$(sha256sum <<<"$1" | cut -c 1-12).tsv"; }

# open_results: puts aside those of another GPU, and takes back those of this one.
open_results() {
  local head other
  head=$(results_head)
  mkdir -p "$work" "$logs"
  if [[ ! -f $results && -f $logs/results.tsv ]]; then cp "$logs/results.tsv" "$results"; fi
  if [[ -f $results ]]; then
    other=$(head -n 1 "$results")
    if [[ $other != "$head" ]]; then
      mv "$results" "$(results_of "$other")"
      say "the results that are here are of another GPU or PyTorch ($other), and are kept in $(results_of "$other")"
    fi
  fi
  if [[ ! -f $results && -f $(results_of "$head") ]]; then mv "$(results_of "$head")" "$results"; fi
  if [[ ! -f $results ]]; then echo "$head" >"$results"; fi
}

# find_digests: of the files that the steps of each kind depend on. A comparison or a bench does not depend on the tests.
declare -A files_digest=()
find_digests() {
  local kind files file
  if ((${#files_digest[@]})); then return; fi
  for kind in tests check pairs bench sanitizer; do
    files=("${code[@]}")
    case $kind in
      tests | sanitizer) files+=(tests) ;;
      check) files+=(tests/golden scripts/gpu_check/trainings.py) ;;
      pairs)
        files+=(scripts/reference_models.py scripts/gpu_check/figures.sh)
        for file in "$root"/scripts/bench_*.py; do files+=("${file#"$root/"}"); done
        ;;
      bench) files+=(scripts/gpu_check/figures.sh) ;;
    esac
    files_digest[$kind]=$(digest_of "$root" "${files[@]}")
  done
}

# step_digest KIND COMMAND...: of these files and the command, wherever its folders are.
step_digest() {
  local text=${*:2}
  text=${text//"$settrain"/settrain} text=${text//"$tests"/tests} text=${text//"$work"/} text=${text//"$root"/}
  echo "${files_digest[$1]} ${text//"$python"/python}" | sha256sum | cut -c 1-12
}

# result_of STEP DIGEST: the row of that digest; with "any", the last one.
result_of() {
  if [[ ! -f $results ]]; then return; fi
  awk -F '\t' -v step="$1" -v digest="$2" '$1 == step && (digest == "any" || $5 == digest) {row = $0} END {if (row) print row}' "$results"
}

# record STEP RESULT SECONDS FIGURE DIGEST: rows of other digests stay.
record() {
  awk -F '\t' -v step="$1" -v digest="$5" '!($1 == step && $5 == digest)' "$results" >"$results.new"
  printf '%s\t%s\t%s\t%s\t%s\n' "$@" >>"$results.new"
  mv "$results.new" "$results"
  cp "$results" "$logs/results.tsv" # where it is kept with the logs
}

# --- Steps

# each_step DO: runs `DO NAME LOG SECONDS COMMAND...` for every step, those of most worth first: what is right, then the speed that is
# compared with others', then the rest. SECONDS: about how long it takes, with 16 cores and an H100. They are guesses: no step has
# run on a GPU yet.
each_step() {
  local do=$1 name tool
  for name in "${gpu_tests[@]}"; do "$do" "tests_$name" tests 40 "$tests/tests_$name" '[gpu]'; done
  for name in losses metrics models; do "$do" "check_$name" check 40 "$settrain" check "$name" --device cuda; done

  local trainings=("$python" "$root/scripts/gpu_check/trainings.py") data=() images=$bundle/share/datasets/fashion-mnist
  if [[ -d $images ]]; then data=(--data "$images"); fi
  "$do" quickstart check 120 "${trainings[@]}" quickstart --folder "$work/runs" "${data[@]}"
  "$do" resume check 40 "${trainings[@]}" resume --folder "$work/runs"

  local pairs=("$python" "$root/scripts/bench_against_python.py") few=(--pairs 6 --device cuda --program "$settrain")
  local train=("${pairs[@]}" train "${few[@]}") compiled=(--compile reduce-overhead --steps 50 --warm-up 10)
  "$do" pairs_losses pairs 60 env PYTHONPATH="$bundle/python" "${pairs[@]}" losses "${few[@]}"
  "$do" pairs_resnet50_bf16 pairs 200 "${train[@]}" --model resnet50 --batch 256 --precision bf16 --compile default --steps 10 --warm-up 10
  "$do" pairs_resnet20 pairs 150 "${train[@]}" --model resnet20 --batch 128 "${compiled[@]}"
  "$do" pairs_resnet50 pairs 110 "${train[@]}" --model resnet50 --batch 32 --steps 20 --warm-up 10
  "$do" pairs_densenet40_40 pairs 200 "${train[@]}" --model densenet40_40 --batch 64 "${compiled[@]}"

  "$do" bench_losses bench 90 "$settrain" bench losses --device cuda --iclr2018
  "$do" bench_metrics bench 60 "$settrain" bench metrics --device cuda
  "$do" bench_train_synthetic bench 60 "$settrain" bench train --device cuda --config synthetic_long_tail.yaml # the loader too
  "$do" bench_loader bench 60 "$settrain" bench loader synthetic_long_tail.yaml

  if ! $sanitize; then return; fi
  for tool in memcheck racecheck; do
    for name in "${gpu_tests[@]}"; do
      if [[ -z $(find "$root/$name" "$root/src/$name" -name '*.cu' 2>/dev/null) ]]; then continue; fi
      # Without LibTorch's cache of memory, so that each tensor has bounds of its own. Each is then a cudaMalloc, which a stream that
      # captures a CUDA graph forbids: tests that capture are tagged [capture].
      "$do" "${tool}_$name" sanitizer 250 env PYTORCH_NO_CUDA_MEMORY_CACHING=1 "$sanitizer" --tool "$tool" --error-exitcode 86 \
        "$tests/tests_$name" '[gpu]~[capture]'
    done
  done
}

last_line() { grep -v '^[[:space:]=]*$' "$1" | tail -n 1 || true; }

# limit_of SECONDS: the most that a step may take of which that is the guess.
limit_of() { echo $(($1 < 20 ? 60 : $1 > 180 ? 540 : 3 * $1)); }

is_next_first=true is_first=false not_started=false step_group=

# run_limited SECONDS COMMAND...: its output goes to $work/output. What it started ends with it, and keeps no GPU: `timeout` makes a group
# of processes, which gets its signal.
run_limited() {
  local status=0
  timeout -k 5 "$1" "${@:2}" >"$work/output" 2>&1 </dev/null &
  step_group=$!
  wait "$step_group" || status=$?
  kill -KILL -- "-$step_group" 2>/dev/null || true
  step_group=
  return $status
}

# stop_step SIGNAL NUMBER: ends the step in hand, and the script.
stop_step() {
  trap - INT TERM HUP
  if [[ -n $step_group ]]; then
    kill -TERM "$step_group" 2>/dev/null || true # timeout passes it on
    wait "$step_group" || true
    kill -KILL -- "-$step_group" 2>/dev/null || true
  fi
  say "stopped by SIG$1; the step in hand has no result"
  exit $((128 + $2))
}

# is_not_started STATUS: whether the step says nothing of the source: a program that is not there, or lacks a library.
is_not_started() {
  (($1 == 126 || $1 == 127)) ||
    { (($1 != 0)) && grep -qE 'error while loading shared libraries|version .[A-Z]+_[0-9.]+. not found' "$work/output"; }
}

# run_step NAME LOG SECONDS COMMAND...
run_step() {
  local name=$1 log=$logs/$2.log most=${limit:-$(limit_of "$3")} limited_by="the step's limit" status=0 start=$SECONDS result=ok figure wanted
  if $dry_run; then
    print_command "${@:4}"
    return
  fi
  if [[ -n $time_left ]]; then
    local remaining=$((time_left - SECONDS))
    if ((remaining < $3)); then
      say "$name: left for the next call"
      return
    fi
    if ((most > remaining)); then most=$remaining limited_by=--time; fi
  fi
  say "$name, about $3 s"
  is_first=$is_next_first is_next_first=false
  run_limited "$most" "${@:4}" || status=$?
  { printf '\n=== %s: %s\n' "$name" "${*:4}" && cat "$work/output"; } >>"$log"
  # A step that had a whole call to itself would have no more time in the next one.
  if [[ $limited_by == --time && $is_first == false && ($status == 124 || $status == 137) ]]; then
    say "$name: stopped at the end of this call, and left for the next"
    return
  fi
  if is_not_started "$status"; then
    say "$name: its program could not be started, which is no result: $(last_line "$work/output")"
    not_started=true
    return
  fi
  figure=$(headline "$name" "$work/output") wanted=$(wanted_of "$name" "$work/output")
  case $status in
    0) ;;
    77) result=FAILED figure="skipped: $(grep -F '[skipped]' "$work/output" | head -n 1 | cut -d ' ' -f 2- || true)" ;;
    124 | 137) result=FAILED figure="stopped after $most s ($limited_by)" ;;
    *) result=FAILED figure="exit code $status: $(last_line "$work/output")" ;;
  esac
  if [[ $result == ok && $name == tests_* ]] && ! grep -q 'All tests passed' "$work/output"; then
    result=FAILED figure="no test passed: $(last_line "$work/output")"
  fi
  if [[ $result == ok ]] && (($(figures "$name" "$work/output" | grep -c .) < $(number_of_figures "$name"))); then
    result=FAILED figure="figures are missing in what it printed: $figure"
  fi
  if [[ $result == ok && $wanted == *below:* ]]; then result=below; fi
  figure=${figure//$'\t'/ }
  record "$name" "$result" $((SECONDS - start)) "${figure:0:160}${wanted:+; $wanted}" "$(step_digest "$2" "${@:4}")"
  say "$name: $result, $((SECONDS - start)) s"
}

# if_wanted DO STEP...: of the steps, those in `wanted`: names, all, or unrecorded.
if_wanted() {
  case " ${wanted[*]} " in
    *' all '* | *" $2 "*) "$@" ;;
    *' unrecorded '*) if [[ -z $(result_of "$2" "$(step_digest "$3" "${@:5}")") ]]; then "$@"; fi ;;
  esac
}
run_if_wanted() { if_wanted run_step "$@"; }
seconds_if_wanted() { if_wanted print_seconds "$@"; }

print_name() { echo "$1"; }
print_seconds() { echo "$3"; }

# estimate all | unrecorded | NAME...
estimate() {
  local wanted=("$@")
  each_step seconds_if_wanted | awk '{sum += $1} END {
    minutes = int((sum + 59) / 60)
    printf "%d step%s, about %d minute%s (guessed: none has run on a GPU yet)", NR, (NR == 1 ? "" : "s"), minutes, (minutes == 1 ? "" : "s")
  }'
}

# run_steps all | unrecorded | NAME...
run_steps() {
  local wanted=("$@") name known
  find_digests
  known=$(each_step print_name)
  for name in "$@"; do
    if ! grep -qxF -- "$name" <<<"$known"$'\nall\nunrecorded'; then
      fail "there is no step '$name', but there are: ${known//$'\n'/ }"
    fi
  done
  export SETTRAIN_SOURCE_DIR=$root SETTRAIN_PROGRAM=$settrain SETTRAIN_PYTHON=$python
  if [[ -n $library_path ]]; then export LD_LIBRARY_PATH=$library_path${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}; fi
  if ! $dry_run; then
    open_results
    if [[ $1 == all ]]; then rm -f "$logs"/{tests,sanitizer,check,bench,pairs}.log; fi
    say "$(estimate "$@")"
    trap 'stop_step INT 2' INT
    trap 'stop_step TERM 15' TERM
    trap 'stop_step HUP 1' HUP
    if $built_now; then is_next_first=false; fi
  fi
  each_step run_if_wanted
  trap - INT TERM HUP
}

# print_row NAME LOG SECONDS COMMAND...
print_row() {
  local step result=- seconds=- figure='not run' digest='' row
  row=$(result_of "$1" "$(step_digest "$2" "${@:4}")")
  if [[ -n $row ]]; then
    IFS=$'\t' read -r step result seconds figure digest <<<"${row//$'\t\t'/$'\t-\t'}"
  else
    row=$(result_of "$1" any)
    if [[ -n $row ]]; then
      IFS=$'\t' read -r step result seconds figure digest <<<"${row//$'\t\t'/$'\t-\t'}"
      figure="older source: $result; $figure" result=older
    fi
  fi
  printf '%-26s %-7s %7s  %s\n' "$1" "$result" "$seconds" "$figure"
}

print_table() {
  local head
  find_digests
  head=$(head -n 1 "$results" 2>/dev/null) || head=$(results_head)
  printf 'settrain %s %s\n\n' "$(source_commit | cut -c 1-12)" "${head#settrain }"
  printf '%-26s %-7s %7s  %s\n' step result seconds figure
  each_step print_row
}

# finish: the table; exit code 1 where a step has failed.
finish() {
  local status=0
  if $dry_run; then return; fi
  mkdir -p "$logs"
  print_table >"$logs/table.txt"
  echo && cat "$logs/table.txt"
  if $not_started || grep -q '^[a-z0-9_]* *FAILED ' "$logs/table.txt"; then status=1; fi
  say "logs: $logs"
  exit $status
}
