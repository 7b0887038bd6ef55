# What scripts/fuzz prints and how it ends. Nothing is compiled: PATH holds stand-ins for the compiler and the build, and the targets
# are scripts that say what libFuzzer says.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder"/{bin,scripts,build/fuzz/tests,tests/fuzz/seeds/{good,bad}}
cp "$SETTRAIN_SOURCE_DIR"/scripts/{fuzz,common.sh} "$folder/scripts"
touch "$folder"/tests/fuzz/{good,bad}_fuzz.cpp
printf '# a comment\n-max_len=77\n' >"$folder/tests/fuzz/good.args"

# stand_in FILE BODY
stand_in() {
  printf '#!/bin/sh\n%s\n' "$2" >"$folder/$1"
  chmod +x "$folder/$1"
}

# expect STATUS TEXT ARGS...: scripts/fuzz ARGS exits with STATUS and says TEXT.
expect() {
  local status=0 output
  output=$(PATH=$folder/bin:/usr/bin:/bin bash "$folder/scripts/fuzz" "${@:3}" 2>&1) || status=$?
  if [[ $status != "$1" || $output != *"$2"* ]]; then
    printf 'fuzz %s: expected exit code %s and "%s", got %s and:\n%s\n' "${*:3}" "$1" "$2" "$status" "$output"
    exit 1
  fi
}

expect 0 'default all: bad good' --help
expect 1 "there is no target 'ugly', but there are: bad good" ugly
expect 1 '--seconds takes a whole number' --seconds soon

stand_in bin/clang++-14 'echo nowhere'
expect 1 'apt-get install clang-14 libclang-rt-14-dev'

stand_in bin/clang++-14 "echo $folder/bin/clang++-14"
stand_in bin/cmake 'exit 0'
stand_in bin/ninja 'exit 0'
stand_in build/fuzz/tests/fuzz_good 'echo "$@" >arguments
echo "#2 INITED cov: 7 ft: 9
#40 DONE cov: 12 ft: 20
stat::number_of_executed_units: 40
stat::new_units_added:          3
stat::peak_rss_mb:              50"'
expect 0 'good            40 executions  coverage    12      3 new units  peak    50 MB  no finding' --seconds 5 good
arguments=$(<"$folder/arguments")
if [[ $arguments != *-max_total_time=5*build/fuzz/corpus/good\ tests/fuzz/seeds/good* || $arguments != *-max_len=77* ]]; then
  echo "the target ran with: $arguments"
  exit 1
fi

stand_in build/fuzz/tests/fuzz_bad 'echo "does not hold: two is one
Test unit written to build/fuzz/findings/bad-crash-12"
exit 77'
expect 1 'FINDING: build/fuzz/findings/bad-crash-12
  does not hold: two is one
  to repeat it: build/fuzz/tests/fuzz_bad build/fuzz/findings/bad-crash-12' bad
expect 1 'no finding' --jobs 1
