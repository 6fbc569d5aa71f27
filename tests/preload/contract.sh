#!/bin/bash
# contract.sh LIBRARY EXPORTS_MAP OBJECT...
#
# What the library may need and what it may show. It is loaded into every process of an agent, and
# most of it runs in vfork children.
set -u
library=$1 exports=$2
shift 2
failures=0

expect() {  # WHAT EXPECTED ACTUAL
  [ "$2" = "$3" ] && return
  diff -u --label expected --label actual <(echo "$2") <(echo "$3")
  echo "FAIL $1"
  failures=$((failures + 1))
}

dynamic=$(readelf --wide --dynamic "$library") || exit 1
expect 'libraries needed' libc.so.6 \
  "$(sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' <<<"$dynamic")"
expect 'bound at load time' yes "$(grep -q BIND_NOW <<<"$dynamic" && echo yes)"
expect 'no run path' '' "$(grep -E 'RPATH|RUNPATH|TEXTREL' <<<"$dynamic")"
expect 'stack not executable' RW \
  "$(readelf --wide --program-headers "$library" | awk '$1 == "GNU_STACK" {print $7}')"

names_in_map=$(sed -n 's/^ *\([A-Za-z_][A-Za-z_0-9]*\);$/\1/p' "$exports" | sort)
expect 'exported symbols, unversioned' "$names_in_map" \
  "$(nm --dynamic --defined-only "$library" | awk '{print $3}' | sort)"
[ "$(wc -l <<<"$names_in_map")" -ge 20 ] || { echo 'FAIL exports.map not read'; failures=1; }

# Symbols the code that runs in vfork children may use: async-signal-safe, without errno.
safe='memchr memcmp memcpy memset strchr strcmp strlen strncmp environ __errno_location'
checked=0
for object in "$@"; do
  allowed=$safe
  case $(basename "$object") in
    shell.* | popen.* | words.* | capture.* | fields.* | references.*) continue ;;
    self.*) allowed="$safe strrchr dladdr dlsym dlerror" ;;  # only in the constructor
  esac
  checked=$((checked + 1))
  undefined=$(nm --undefined-only "$object" | awk '{print $2}' |
    grep -v -e '^_ZN7preload' -e '^_ZNK7preload' -e '^airlock_syscall_' -e '^_GLOBAL_OFFSET_TABLE_$')
  for symbol in $undefined; do
    [[ " $allowed " = *" $symbol "* ]] || expect "$(basename "$object")" '' "$symbol"
  done
done
[ "$checked" -ge 10 ] || { echo "FAIL only $checked objects"; failures=1; }

echo "$failures failures"
[ "$failures" -eq 0 ]
