# shellcheck shell=bash
# Fresh Debian systems for .ci/debian13 and .ci/wheel: chroots made by mmdebstrap. To be sourced after scripts/common.sh; needs root.

if (($(id -u) != 0)); then fail 'root is needed for the chroot'; fi
for needed in mmdebstrap unshare git; do
  if ! command -v "$needed" >/dev/null; then fail "$needed is missing: apt-get install mmdebstrap util-linux git"; fi
done

running= temporary=
finish() {
  if [[ $running ]]; then # with unshare end its namespaces, and with these all that runs and is mounted there
    kill -KILL "$running" 2>/dev/null || true
    wait "$running" 2>/dev/null || true
  fi
  if [[ $temporary ]]; then rm -rf --one-file-system "$temporary"; fi
}
trap finish EXIT
trap 'exit 143' TERM
trap 'exit 130' INT

# make_temporary_folder: sets temporary, which finish() deletes.
make_temporary_folder() {
  temporary=$(mktemp -d)
  chmod 755 "$temporary"
}

# make_chroot SUITE FOLDER PACKAGES: a new Debian in FOLDER, where there is none yet, with the network's settings of this machine.
make_chroot() {
  local suite=$1 folder=$2 packages=$3
  if [[ ! -e $folder ]]; then
    rm -rf --one-file-system "$folder.new"
    mmdebstrap --variant=minbase --include="$packages" "$suite" "$folder.new"
    mv "$folder.new" "$folder"
  fi
  grep -qxs "VERSION_CODENAME=$suite" "$folder/etc/os-release" || fail "$folder is no Debian $suite"
  install -m 644 /etc/resolv.conf "$folder/etc/resolv.conf"
  if [[ -f /etc/pip.conf ]]; then install -m 644 /etc/pip.conf "$folder/etc/pip.conf"; fi
  mkdir -p "$folder/usr/local/share/ca-certificates"
  if [[ -d /usr/local/share/ca-certificates ]]; then cp -rL /usr/local/share/ca-certificates/. "$folder/usr/local/share/ca-certificates/"; fi
}

# in_chroot FOLDER DATA COMMANDS: runs the lines COMMANDS of bash in the chroot, with the home /srv. Mounts and processes have namespaces
# of their own, and end with them. DATA, where it is a folder, is mounted for reading only as /srv/.cache/settrain-data.
in_chroot() {
  local folder=$1 data=$2 commands=$3
  mkdir -p "$folder/srv/.cache/settrain-data"
  unshare --mount --fork --pid --kill-child bash -euo pipefail -c '
    folder=$1 data=$2 commands=$3
    shift 3
    mount -t proc proc "$folder/proc"
    mount --rbind /dev "$folder/dev"
    mount --rbind /sys "$folder/sys"
    if [[ -d $data ]]; then
      mount --bind "$data" "$folder/srv/.cache/settrain-data"
      mount -o remount,bind,ro "$folder/srv/.cache/settrain-data"
    fi
    exec chroot "$folder" env -i HOME=/srv LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
      PIP_CERT=/etc/ssl/certs/ca-certificates.crt "$@" bash -euo pipefail -c "update-ca-certificates >/dev/null; cd /srv; $commands"
  ' - "$folder" "$data" "$commands" ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} ${no_proxy:+no_proxy="$no_proxy"} &
  running=$!
  wait "$running"
  running=
}
