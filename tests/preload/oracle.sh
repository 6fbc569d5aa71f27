#!/bin/bash
# oracle.sh GROUP FIXTURE REPORT STUB LIBRARY NOTHING
#
# Runs every case of GROUP twice, bare and under the interposer, in the same environment and under
# the same paths: $work/lib is a symlink to a folder whose library does nothing, then to the real
# one. Whatever a caller could notice must be the same. And the stub must have run exactly where
# the case says so: without that, an interposer that does nothing would pass.
set -u
# shellcheck disable=SC2034  # world.sh uses them
group=$1 fixture=$2 report=$3 stub=$4 library=$5 nothing=$6

top=$(mktemp -d) && chmod 755 "$top" || exit 1
trap 'rm -rf "$top"' EXIT

# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/world.sh"

run_all() {  # MODE
  rm -rf "$top/work" && mkdir "$top/work" "$top/out.$1" && cd "$top/work" && make_world || exit 1
  ln -sfn "$1" "$top/lib"
  while read -r _ case _; do
    : >"$top/$1/ran"
    run_case "$case" >"$top/out.$1/$case"
    wc -l <"$top/$1/ran" >"$top/out.$1/$case.ran"
  done <"$top/cases"
}

failures=0
fail() { echo "FAIL $*"; failures=$((failures + 1)); }

judge() {  # CASE EXPECTED
  local bare=$top/out.bare/$1 routed=$top/out.routed/$1
  diff -u --label bare --label routed "$bare" "$routed" || fail "$1: the interposer changes it"
  grep -q 'exit status 124' "$bare" && fail "$1: timed out"
  [ "$(cat "$bare.ran")" -eq 0 ] || fail "$1: the stub ran without the interposer"
  local runs
  runs=$(cat "$routed.ran")
  case $2 in
    runs) [ "$runs" -gt 0 ] || fail "$1: was not routed" ;;
    not) [ "$runs" -eq 0 ] || fail "$1: reached the stub $runs times" ;;
  esac
}

make_library_folder "$top/bare" "$nothing"
make_library_folder "$top/routed" "$library"
"$fixture" --list | grep "^$group " >"$top/cases"
[ -s "$top/cases" ] || fail "no cases in group $group"
run_all bare
run_all routed
while read -r _ case expected; do judge "$case" "$expected"; done <"$top/cases"
echo "$(wc -l <"$top/cases") cases, $failures failures"
[ "$failures" -eq 0 ]
