# shellcheck shell=bash disable=SC2154
# The steps that are run there, and the table of their results. For scripts/gpu_check.sh.

# --- Results: a file of lines "STEP RESULT SECONDS FIGURE", separated by tabs, below a line that names the
# source and the GPU. Several machines of one kind may have added to it, one after the other.

results_head() { echo "settrain source $(source_digest) on ${gpu:-no GPU}; PyTorch ${torch_version:-not found}"; }

# open_results: begins anew where those that are there are of another source or GPU.
open_results() {
  local head
  head=$(results_head)
  mkdir -p "$work" "$logs"
  if [[ ! -f $results && -f $logs/results.tsv ]]; then cp "$logs/results.tsv" "$results"; fi
  if [[ -f $results && $(head -n 1 "$results") != "$head" ]]; then
    say "the results that are here are of another source or GPU, and are dropped: $(head -n 1 "$results")"
    rm "$results"
  fi
  if [[ ! -f $results ]]; then echo "$head" >"$results"; fi
}

result_of() { if [[ -f $results ]]; then awk -F '\t' -v step="$1" '$1 == step' "$results"; fi; }

# record STEP RESULT SECONDS FIGURE
record() {
  awk -F '\t' -v step="$1" '$1 != step' "$results" >"$results.new"
  printf '%s\t%s\t%s\t%s\n' "$@" >>"$results.new"
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

# run_step NAME LOG SECONDS COMMAND...
run_step() {
  local name=$1 log=$logs/$2.log most=$limit status=0 start=$SECONDS result=ok figure wanted
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
    if ((most > remaining)); then most=$remaining; fi
  fi
  say "$name, about $3 s"
  timeout --foreground -k 5 "$most" "${@:4}" >"$work/output" 2>&1 </dev/null || status=$?
  { printf '\n=== %s: %s\n' "$name" "${*:4}" && cat "$work/output"; } >>"$log"
  if ((most < limit && (status == 124 || status == 137))); then
    say "$name: stopped at the end of this call, and left for the next"
    return
  fi
  figure=$(headline "$name" "$work/output") wanted=$(wanted_of "$name" "$work/output")
  case $status in
    0) ;;
    77) result=FAILED figure="skipped: $(grep -F '[skipped]' "$work/output" | head -n 1 | cut -d ' ' -f 2- || true)" ;;
    124 | 137) result=FAILED figure="stopped after $limit s (--limit)" ;;
    *) result=FAILED figure="exit code $status: $(last_line "$work/output")" ;;
  esac
  if [[ $result == ok && $name == tests_* ]] && ! grep -q 'All tests passed' "$work/output"; then
    result=FAILED figure="no test passed: $(last_line "$work/output")"
  fi
  if [[ $result == ok ]] && (($(figures "$name" "$work/output" | grep -c .) < $(number_of_figures "$name"))); then
    result=FAILED figure="figures are missing in what it printed: $figure"
  fi
  if [[ $result == ok && $wanted == *below:* ]]; then result=below; fi
  record "$name" "$result" $((SECONDS - start)) "${figure:0:160}${wanted:+; $wanted}"
  say "$name: $result, $((SECONDS - start)) s"
}

# if_wanted DO STEP...: of the steps, those in `wanted`: names, all, or unrecorded.
if_wanted() {
  case " ${wanted[*]} " in
    *' all '* | *" $2 "*) "$@" ;;
    *' unrecorded '*) if [[ -z $(result_of "$2") ]]; then "$@"; fi ;;
  esac
}
run_if_wanted() { if_wanted run_step "$@"; }
seconds_if_wanted() { if_wanted print_seconds "$@"; }

print_name() { echo "$1"; }
print_seconds() { echo "$3"; }

# estimate all | unrecorded | NAME...
estimate() {
  local wanted=("$@")
  each_step seconds_if_wanted | awk '{sum += $1} END {printf "%d steps, about %d minutes (guessed: none has run on a GPU yet)", NR, (sum + 59) / 60}'
}

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
    open_results
    if [[ $1 == all ]]; then rm -f "$logs"/{tests,sanitizer,check,bench,pairs}.log; fi
    say "$(estimate "$@")"
  fi
  each_step run_if_wanted
}

print_row() {
  local step result=- seconds=- figure='not run' row
  row=$(result_of "$1")
  if [[ -n $row ]]; then IFS=$'\t' read -r step result seconds figure <<<"$row"; fi
  printf '%-26s %-7s %7s  %s\n' "$1" "$result" "$seconds" "$figure"
}

print_table() {
  local head
  head=$(head -n 1 "$results" 2>/dev/null) || head=$(results_head)
  if [[ $head == "settrain source $(source_digest) "* ]]; then head=${head/source */$(source_commit | cut -c 1-12) ${head#settrain source * }}; fi
  printf '%s\n\n' "$head"
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
  if grep -q '^[a-z0-9_]* *FAILED ' "$logs/table.txt"; then status=1; fi
  say "logs: $logs"
  exit $status
}
