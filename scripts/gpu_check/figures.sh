# shellcheck shell=bash
# What the table says of a step: figures out of what it printed, beside those that are wanted. For scripts/gpu_check.sh.

# headline STEP FILE: the figure of a step that passed.
headline() {
  case $1 in
    bench_losses) awk '$1 == "noised_topk" {print "noised_topk " $2 " ms, " $3 " x cross-entropy"; exit}' "$2" ;;
    bench_train_*)
      awk '/^one, cached/ {printf "%s images/s, %s ms a step", $3, $4}
           /^loader \/ cached/ {printf ", loader / cached %s", $4} END {print ""}' "$2"
      ;;
    bench_loader) awk '$2 == "threads" {n = $1; speed = $3} END {print speed " images/s on " n " threads"}' "$2" ;;
    bench_metrics) sed -n 's/^the whole evaluation  *\([0-9.]*\).*/the whole evaluation \1 ms/p' "$2" ;;
    pairs_losses) ;;
    pairs_*) sed -n 's/^settrain, \([a-z_]*\)  *\([0-9.]*\) .*/\2 images\/s, \1/p' "$2" ;;
    memcheck_* | racecheck_*) sed -n 's/^=* *\(\(ERROR\|RACECHECK\) SUMMARY.*\)/\1/p' "$2" | tail -n 1 ;;
    *) last_line "$2" ;;
  esac
}

# figures STEP FILE: lines "NAME FIGURE (at_least | at_most) WANTED" of what is to be reached on an H100 or H200, and was measured.
figures() {
  case $1 in
    bench_losses)
      awk '/^time of the device/ {on_device = 1}
           on_device && $1 == "noised_topk" {print "noised_topk_us", $2, "at_most", 6}
           on_device && $1 == "smoothed_topk_hinge" {print "smoothed_topk_hinge_us", $2, "at_most", 8; on_device = 0}
           /^divide and conquer, their backward .* 1000 / {theirs = $(NF - 1) + $NF}
           /^smoothed_topk_hinge  *1000 / && theirs {print "hinge_over_its_papers", theirs / ($(NF - 1) + $NF), "at_least", 20}' "$2"
      ;;
    bench_metrics)
      awk '/at::sort of all values/ {print "thresholds_over_sort", $6, "at_least", 5; sort = $5}
           /at::topk of each row/ {topk = $5}
           /^the whole evaluation/ {print "evaluation_over_sorts", (sort + topk) / $4, "at_least", 10}' "$2"
      ;;
    pairs_losses) ratio "$2" 'settrain / pytopk in speed, N(0, 3^2), epsilon 0.2' over_pytopk 10 ;;
    pairs_resnet20) over_eager "$2" 1.5 && over_compiled "$2" 1.0 ;;
    pairs_densenet40_40)
      over_eager "$2" 1.5 && over_compiled "$2" 1.0
      # The paper's authors take 65 s for an epoch of the 50,000 training images.
      awk '/^settrain, / {print "epoch_of_cifar100_s", 50000 / $3, "at_most", 10}' "$2"
      ;;
    pairs_resnet50) over_eager "$2" 1.1 ;;
    pairs_resnet50_bf16) over_eager "$2" 1.03 && over_compiled "$2" 0.95 ;;
  esac
}

# ratio FILE WHAT NAME WANTED: from a line "ratio WHAT...: median X, ...".
ratio() {
  awk -v what="ratio $2" -v name="$3" -v wanted="$4" \
    'index($0, what) == 1 && match($0, /: median [0-9.]+/) {print name, substr($0, RSTART + 9, RLENGTH - 9), "at_least", wanted; exit}' "$1"
}
over_eager() { ratio "$1" 'settrain / PyTorch (' over_eager "$2"; }
over_compiled() { ratio "$1" 'settrain / torch.compile' over_compiled "$2"; }

# number_of_figures STEP: how many there are where the step did all that it should.
number_of_figures() {
  case $1 in
    bench_losses | pairs_densenet40_40) echo 3 ;;
    bench_metrics | pairs_resnet20 | pairs_resnet50_bf16) echo 2 ;;
    pairs_losses | pairs_resnet50) echo 1 ;;
    *) echo 0 ;;
  esac
}

# wanted_of STEP FILE: its figures in one line; those that fall short after "below:".
wanted_of() {
  figures "$1" "$2" | awk '{
    least = ($3 == "at_least")
    short = (least ? $2 < $4 : $2 > $4)
    printf("%s%s%s %.4g (wanted %s %s)", (NR > 1 ? ", " : ""), (short ? "below: " : ""), $1, $2, (least ? ">=" : "<="), $4)
  }'
}
