# SPDX-License-Identifier: BSL-1.0
# What cmake/demo and cmake/test share: progress lines and the installation of missing packages. To be sourced.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root" || exit 1
logs=$root/build/log
mkdir -p "$logs"

# stage <title> <command>...: one progress line with the time it took. The output goes to a log file, named in
# stage_log; when the command fails, its end is shown and the status is returned.
stage() {
  local title=$1 start=$SECONDS status
  shift
  stage_log=$logs/${title//[^a-zA-Z0-9]/_}.log
  printf '%-66s' "$title ..."
  "$@" >"$stage_log" 2>&1 </dev/null
  status=$?
  if [[ $status == 0 ]]; then
    printf 'ok  %4d s\n' $((SECONDS - start))
  else
    printf 'FAILED after %d s\n\n' $((SECONDS - start))
    tail -n 150 "$stage_log"
    printf '\n%s failed (status %d): %s\nthe whole output: %s\n' "$title" $status "$*" "$stage_log"
  fi
  return $status
}

# missing_packages <demo|test>: the packages of packages.txt that this machine lacks. Where another package brought
# the command, or there is no dpkg to ask about libraries, nothing is missing.
missing_packages() {
  local whom package command
  while read -r whom package command _; do
    [[ -z $whom || $whom == \#* || ($1 == demo && $whom == test) ]] && continue
    [[ $command != - ]] && command -v "$command" >/dev/null && continue
    [[ $command == - ]] && ! command -v dpkg-query >/dev/null && continue
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || echo "$package"
  done <"$root/cmake/packages.txt"
}

apt_install() {
  export DEBIAN_FRONTEND=noninteractive
  # Without package lists, or with old ones, the first try fails; only then are they fetched.
  apt-get install -y --no-install-recommends "$@" || {
    apt-get update && apt-get install -y --no-install-recommends "$@"
  }
}

# ensure_packages <demo|test>: installs what is missing when root, else says which command would.
ensure_packages() {
  local missing
  mapfile -t missing < <(missing_packages "$1")
  [[ ${#missing[@]} == 0 ]] && return 0
  if [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null; then
    stage "installing ${#missing[@]} packages" apt_install "${missing[@]}"
  else
    echo "Some packages are missing. Please run, and then try again:"
    echo "  sudo apt-get update && sudo apt-get install -y --no-install-recommends ${missing[*]}"
    return 1
  fi
}
