# shellcheck shell=bash disable=SC2154
# The steps that are run there, and the table of their results. For scripts/gpu_check.sh.

# record STEP RESULT SECONDS FIGURE
record() { printf '%s\t%s\t%s\n' "$2" "$3" "$4" >"$results/$1"; }

# each_step DO: runs `DO NAME LOG COMMAND...` for every step: what must be right first, what takes long last.
each_step() {
  local do=$1 name tool
  for name in "${gpu_tests[@]}"; do "$do" "tests_$name" tests "$tests/tests_$name" '[gpu]'; done
  if $sanitize; then
    for tool in memcheck racecheck; do
      for name in "${gpu_tests[@]}"; do
        if [[ -z $(find "$root/$name" "$root/src/$name" -name '*.cu' 2>/dev/null) ]]; then continue; fi
        # Without LibTorch's cache of memory, so that each tensor has bounds of its own.
        "$do" "${tool}_$name" sanitizer env PYTORCH_NO_CUDA_MEMORY_CACHING=1 "$sanitizer" --tool "$tool" --error-exitcode 86 \
          "$tests/tests_$name" '[gpu]'
      done
    done
  fi
  for name in losses metrics models; do "$do" "check_$name" check "$settrain" check "$name" --device cuda; done

  local trainings=("$python" "$root/scripts/gpu_check/trainings.py") data=() images=$bundle/share/datasets/fashion-mnist
  if [[ -d $images ]]; then data=(--data "$images"); fi
  "$do" quickstart trainings "${trainings[@]}" quickstart --folder "$work/runs" "${data[@]}"
  "$do" resume trainings "${trainings[@]}" resume --folder "$work/runs"

  "$do" bench_losses bench "$settrain" bench losses --device cuda --iclr2018
  "$do" bench_metrics bench "$settrain" bench metrics --device cuda
  local pairs=("$python" "$root/scripts/bench_against_python.py") few=(--pairs 6 --device cuda --program "$settrain")
  "$do" pairs_losses pairs env PYTHONPATH="$bundle/python" "${pairs[@]}" losses "${few[@]}"
  local train=("${pairs[@]}" train "${few[@]}") compiled=(--compile reduce-overhead --steps 50 --warm-up 10)
  "$do" pairs_resnet20 pairs "${train[@]}" --model resnet20 --batch 128 "${compiled[@]}"
  "$do" pairs_densenet40_40 pairs "${train[@]}" --model densenet40_40 --batch 64 "${compiled[@]}"
  "$do" pairs_resnet50 pairs "${train[@]}" --model resnet50 --batch 32 --steps 20 --warm-up 10
  "$do" pairs_resnet50_bf16 pairs "${train[@]}" --model resnet50 --batch 256 --precision bf16 --compile default --steps 10 --warm-up 10
  "$do" bench_train_synthetic bench "$settrain" bench train --device cuda --config synthetic_long_tail.yaml # the loader too
  "$do" bench_loader bench "$settrain" bench loader synthetic_long_tail.yaml
}

last_line() { grep -v '^[[:space:]=]*$' "$1" | tail -n 1 || true; }

# run_step NAME LOG COMMAND...
run_step() {
  local name=$1 log=$logs/$2.log status=0 start=$SECONDS result=ok figure wanted
  if $dry_run; then
    print_command "${@:3}"
    return
  fi
  say "$name"
  timeout --foreground -k 10 "$limit" "${@:3}" >"$work/output" 2>&1 </dev/null || status=$?
  { printf '\n=== %s: %s\n' "$name" "${*:3}" && cat "$work/output"; } >>"$log"
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

# run_if_wanted NAME LOG COMMAND...: of the steps, those in `wanted`: names, all, or unrecorded.
run_if_wanted() {
  case " ${wanted[*]} " in
    *' all '* | *" $1 "*) run_step "$@" ;;
    *' unrecorded '*) if [[ ! -f $results/$1 ]]; then run_step "$@"; fi ;;
  esac
}

print_name() { echo "$1"; }

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
    mkdir -p "$results" "$logs"
    if [[ $1 == all ]]; then rm -f "$logs"/{tests,sanitizer,check,trainings,bench,pairs}.log; fi
  fi
  each_step run_if_wanted
}

print_row() {
  local result=- seconds=- figure='not run'
  if [[ -f $results/$1 ]]; then IFS=$'\t' read -r result seconds figure <"$results/$1"; fi
  printf '%-26s %-7s %7s  %s\n' "$1" "$result" "$seconds" "$figure"
}

print_table() {
  printf 'settrain %s on %s; PyTorch %s\n\n' "$(source_commit | cut -c 1-12)" "${gpu:-no GPU}" "${torch_version:-not found}"
  printf '%-26s %-7s %7s  %s\n' step result seconds figure
  print_row build
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
