# shellcheck shell=bash disable=SC2034,SC2154
# The archive that a machine with a GPU and no network starts from. For scripts/gpu_check.sh.

# What the build needs beside LibTorch, without what decodes image files (Debian's libraries for that drag in hundreds of MB).
packages=(libyaml-cpp-dev libgloo-dev libspdlog-dev libfmt-dev libcli11-dev catch2 nlohmann-json3-dev zlib1g-dev libssl-dev libjs-chart.js)
if dpkg-query -L libcatch2-dev >/dev/null 2>&1; then packages+=(libcatch2-dev); fi # where catch2 is empty, as on Debian 13
most_bytes=$((64 * 1024 * 1024))

# packed_files: what of the packages goes into the bundle.
packed_files() {
  local file
  dpkg-query -L "${packages[@]}" | sort -u | while IFS= read -r file; do
    case $file in
      /usr/share/doc/*/copyright) echo "$file" ;;
      /usr/share/doc/*) ;;
      /usr/include/*) if [[ ! -d $file ]]; then echo "$file"; fi ;;
      *.cmake | */chart.min.js | */libcrypto.a | */libz.a | */libCatch2*.a) echo "$file" ;;
      */libyaml-cpp.so | */libfmt.so | */libspdlog.so) printf '%s\n' "$file"* ;; # the library and its links
    esac
  done
}

pack() {
  local archive=${1:-$work/settrain.tar.gz} package missing=() bytes name
  if ! command -v dpkg-query >/dev/null; then fail "pack gathers Debian's packages, and there is no dpkg-query here"; fi
  for package in "${packages[@]}"; do
    if ! dpkg-query -L "$package" >/dev/null 2>&1; then missing+=("$package"); fi
  done
  if ((${#missing[@]})); then fail "not installed: ${missing[*]}; scripts/setup --tests installs them"; fi
  git -C "$root" rev-parse HEAD >/dev/null 2>&1 || fail "pack takes the source from git, and $root is no clone"
  local images=/usr/share/datasets/fashion-mnist
  if $with_data && [[ ! -d $images ]]; then fail "--with-data: there is no $images; the package dataset-fashion-mnist has it"; fi
  if $dry_run; then
    packed_files
    return
  fi
  if [[ -n $(git -C "$root" status --porcelain) ]]; then
    if $with_programs; then
      fail 'the source has changes or files that are not committed, and the programs would be built of them: commit, or pack --without-programs'
    fi
    say 'what is not committed stays behind'
  fi
  if $with_programs; then
    find_torch
    find_compilers
    if ((${#missing[@]})); then
      printf '%s\n' "${missing[@]}" | while IFS= read -r what; do say "missing: $what"; done
      say 'so the programs will be built on the other machine'
      with_programs=false
    fi
  fi

  mkdir -p "$work" "$(dirname "$archive")"
  rm -rf "$bundle"
  mkdir "$bundle"
  # Headers that Debian keeps apart for each architecture go with the others.
  packed_files | tar -C / --create --files-from=<(sed 's,^/,,') --transform 's,^usr/,,;s,^include/[^/]*-linux-gnu[^/]*/,include/,' |
    tar -C "$bundle" --extract
  git -C "$root" rev-parse HEAD >"$bundle/commit"
  if $with_data; then mkdir -p "$bundle/share/datasets" && cp -r "$images" "$bundle/share/datasets"; fi
  pack_pytopk
  if $with_programs; then
    capability= # for every GPU, whatever this machine has
    build_here
    cmake --install "$work/build" --prefix "$bundle/programs" --strip >/dev/null
    for name in "${gpu_tests[@]}"; do strip -o "$bundle/programs/bin/tests_$name" "$work/build/tests/tests_$name"; done
    packed_digest >"$bundle/programs/source"
  fi

  local tar_file
  tar_file=$(mktemp "$work/archive.XXXXXX")
  git -C "$root" archive --prefix=settrain/ HEAD >"$tar_file"
  tar -C "$work" --append --file "$tar_file" --transform 's,^bundle,settrain/build/gpu_check/bundle,' bundle
  bytes=$(stat -c %s "$tar_file")
  gzip -c "$tar_file" >"$archive"
  rm "$tar_file"
  echo "$archive: $(in_mib "$(stat -c %s "$archive")"), $(in_mib "$bytes") unpacked; without the source: $bundle"
  if (($(stat -c %s "$archive") > most_bytes)); then
    say "that is more than the 64 MiB meant; it is less without --with-data, or with --without-programs"
  fi
  say "on the other machine: $(estimate all)"
}

# packed_digest: the digest of the source as it will be unpacked.
packed_digest() {
  local folder
  folder=$(mktemp -d "$work/source.XXXXXX")
  git -C "$root" archive HEAD | tar -C "$folder" --extract
  source_digest "$folder"
  rm -r "$folder"
}

# pack_pytopk: what the losses are compared with, where a Python here has it.
pack_pytopk() {
  local candidate folder
  for candidate in "${SETTRAIN_PYTHON:-}" "$(chosen python)" python3; do
    if [[ -z $candidate ]] || ! command -v "$candidate" >/dev/null; then continue; fi
    folder=$("$candidate" -c 'import importlib.util as u; print(*u.find_spec("pytopk").submodule_search_locations)' 2>/dev/null) || continue
    mkdir -p "$bundle/python"
    cp -r "$folder" "${folder%/*}"/pytopk-*.dist-info "$bundle/python"
    find "$bundle/python" -name __pycache__ -prune -exec rm -r {} +
    return
  done
  say 'pytopk is in no Python here, so the step pairs_losses will fail there; scripts/setup --tests installs it'
}

in_mib() { awk -v bytes="$1" 'BEGIN {printf "%.1f MiB", bytes / 1048576}'; }
