# shellcheck shell=bash disable=SC2154,SC2016,SC2034
# The files the cases exec, and how a case is run. Sourced by oracle.sh and protocol.sh, which set
# top, fixture, report and stub.
name=libairlock-preload.so

make_library_folder() {  # FOLDER LIBRARY
  mkdir "$1"
  cp "$2" "$1/$name"
  cp "$stub" "$1/airlock-stub"
  : >"$1/ran"
  chmod 666 "$1/ran"
}

program() { printf '%b' "$2" >"$1" && chmod 755 "$1"; }  # FILE CONTENT

make_programs() {
  cp "$report" report
  cp "$fixture" exec_every_way
  ln -s report link
  cp "$report" link_target
  ln -s loop loop
  mkfifo fifo && chmod 755 fifo
  mkdir folder
  cp report denied && chmod 644 denied
  cp report unreadable && chmod 111 unreadable
  mkdir locked && cp report locked && chmod 700 locked
  program script '#!/bin/sh\necho "script $0"\nfor word in "$@"; do echo "word $word"; done\n'
  program script_constant '#!/bin/sh\necho "script ran"\n'
  program text 'echo "text $0 $GREETING"\nfor word in "$@"; do echo "word $word"; done\n'
  program count 'echo "$# words, last ${3000}"\n'
  program empty ''
  program zeros '\0\0\0\0\0\0\0\0'
}

make_scripts() {
  program bad_shebang '#!/nowhere/at/all\n'
  program shebang_dir '#!/tmp\n'
  program shebang_denied '#!./denied\n'
  program shebang_missing_relative '#! missing x\n'
  program shebang_only '#!'
  program shebang_blank '#!  \t\n'
  program shebang_long "#!/$(printf '%0300d' 0)\n"
  program shebang_text '#!./text\n'
  program shebang_relative '#!./report\n'
  program shebang_argument '#! \t./report  one argument \t\n'
  program shebang_unended '#!./report'
  program shebang1 '#!./report\n'
  for depth in 2 3 4 5 6; do program shebang$depth "#!./shebang$((depth - 1))\n"; done
}

make_elf_files() {
  head -c 4 "$fixture" >elf4
  head -c 64 "$fixture" >elf_header
  cp "$fixture" elf_foreign
  printf '\026' | dd of=elf_foreign bs=1 seek=18 conv=notrunc status=none  # EM_S390
  sed 's/ld-linux/ld-lunix/g' "$fixture" >bad_loader
  chmod 755 elf4 elf_header elf_foreign bad_loader
  program noloader_script '#!./bad_loader\n'
}

make_path_folders() {
  mkdir bin_good bin_other bin_denied bin_folder bin_badshebang bin_folder/prog bin_good/sub
  cp report bin_good/prog
  ln -s ../report bin_good/report
  program bin_good/text_prog 'echo "text $0 $1 $GREETING"\n'
  program bin_good/relative_script '#!./prog\n'
  program bin_other/prog '#!/bin/sh\necho "the other one"\n'
  cp denied bin_denied/prog
  cp bad_shebang bin_badshebang/prog
}

make_world() { make_programs && make_scripts && make_elf_files && make_path_folders; }

run_case() {  # CASE
  timeout -k 1 60 env -i PATH=/usr/bin:/bin HOME=/ SET=value LC_ALL=C \
    LD_PRELOAD="$top/lib/$name" ./exec_every_way "$1" </dev/null 2>&1
  echo "exit status $?"
}
