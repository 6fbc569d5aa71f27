#!/bin/bash
# protocol.sh FIXTURE REPORT STUB LIBRARY
#
# What the stub is told, to the letter, and what happens when there is no stub.
set -u
# shellcheck disable=SC2034  # world.sh uses them
fixture=$1 report=$2 stub=$3 library=$4

top=$(mktemp -d) && chmod 755 "$top" || exit 1
trap 'rm -rf "$top"' EXIT

# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/world.sh"

failures=0
expect() {  # WHAT EXPECTED ACTUAL
  [ "$2" = "$3" ] && return
  diff -u --label expected --label actual <(echo "$2") <(echo "$3")
  echo "FAIL $1"
  failures=$((failures + 1))
}

targets() {  # CASE EXPECTED: the TARGET of each run of the stub
  : >"$top/lib/ran"
  run_case "$1" >"$top/out"
  expect "targets of $1" "$2" "$(cat "$top/lib/ran")"
}

prints() {  # CASE EXPECTED: the output, without what every case prints
  expect "output of $1" "$2" "$(run_case "$1" | grep -v -e '^env=' -e '^errno at' -e '^end of')"
}

make_library_folder "$top/lib" "$library"
mkdir "$top/work" && cd "$top/work" && make_world || exit 1
work=$top/work

targets execve ./report
targets execl ./report
targets syscall_execveat ./report
targets script ./script
targets path_order 'bin_good/prog
bin_other/prog
bin_good/prog
bin_good/prog
bin_good/prog
bin_good/prog'
targets path_empty_elements 'report
report
report
report
./report'
targets path_unset /bin/true
targets shell_fallback "$(printf '/bin/sh\n%.0s' 1 2 3 4 5 6 7)"
targets fexecve "$(printf "$work/report\n%.0s" 1 2 3 4 5 6 7 8)"
targets execveat_below "$work/bin_good/../link
/bin/sh
$work/report"
targets proc_self "$(printf "$work/exec_every_way\n%.0s" 1 2 3 4 5)"
targets spawn_search 'bin_good/prog
./report
report'
targets system_sigchld_ignored /bin/sh

: >"$top/lib/print"
prints execl 'argv[0]=airlock-stub
argv[1]=exec1
argv[2]=./report
argv[3]=-name
argv[4]=1
argv[5]=2
argv[6]=3
argv[7]=4
argv[8]=5
argv[9]=6
argv[10]=7
argv[11]=8
exit status 0'
prints argc_0 'argv[0]=airlock-stub
argv[1]=exec1
argv[2]=./report
exit status 0'
prints argv_and_envp_null 'argv[0]=airlock-stub
argv[1]=exec1
argv[2]=./report
exit status 0'
prints system_sigchld_ignored "$(printf '%s\n' 'argv[0]=airlock-stub' 'argv[1]=exec1' \
  'argv[2]=/bin/sh' 'argv[3]=sh' 'argv[4]=-c' 'argv[5]=exit 3' \
  'SIGCHLD ignored: 0xffffffff, errno 10' 'exit status 0')"
expect 'the environment of execve' "$(printf 'env=%b\n' A=1 A=2 'no equals sign' = '\303(=\200' \
  PATH=/nowhere LAST=)" "$(run_case execve | grep -a '^env=')"
prints stub_itself "$(for i in 1 2 3 4; do
  way=(execve execvp execveat posix_spawn)
  printf 'argv[0]=given\nargv[1]=%d\n%s: exited 0\n' "$i" "${way[i - 1]}"
done)
posix_spawn: 0
exit status 0"
rm "$top/lib/print"

prints pidfd_spawn 'pidfd_spawn as libc has it: 1
pidfd_spawnp as libc has it: 1
exit status 0'
prints dlerror 'dlerror: none
exit status 0'
prints proc_open '_IO_proc_open: EACCES
exit status 0'

refused='execve: EACCES
execvp: EACCES
execvp of text: EACCES
execveat: EACCES
fexecve: EACCES
posix_spawn: EACCES
posix_spawnp: EACCES
system 0x7f00 system: EACCES
shell there 0
popen: EACCES
missing: ENOENT
exit status 0'
chmod 644 "$top/lib/airlock-stub"
prints every_way "$refused"
rm "$top/lib/airlock-stub"
prints every_way "$refused"

# Loaded by a relative name, and used from another directory.
cp "$stub" "$top/lib/airlock-stub"
: >"$top/lib/ran"
(cd "$top/lib" && LD_PRELOAD=./$name /bin/sh -c 'cd /; /bin/true' 2>/dev/null)
expect 'a relative LD_PRELOAD' /bin/true "$(cat "$top/lib/ran")"

echo "$failures failures"
[ "$failures" -eq 0 ]
