// wordexp(3).
#include <wordexp.h>

#include "cases.h"

static wordexp_t words;

static void expand(const char* text, int flags) {
  const int error = wordexp(text, &words, flags);
  SAY("%s => %d", text, error);
  for (size_t i = 0; error == 0 && i < words.we_wordc; ++i) {
    SAY(" [%s]", words.we_wordv[words.we_offs + i]);
  }
  SAY("\n");
  if (error == 0) wordfree(&words);
}

#define EXPAND_ALL(...)                           \
  static const char* const all[] = {__VA_ARGS__}; \
  for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); ++i) expand(all[i], 0)

static void c_commands(void) {
  EXPAND_ALL("$(echo one)", "`echo one`", "a$(echo \" b \")c", "x$(echo a b)y$(echo c d)z",
             "\"$(echo '  two   spaces ')\"", "\"a`printf 'x\\n\\n\\n'`b\"",
             "$(printf 'a\\n\\nb\\n\\n')", "$(true)", "x$(true)y", "\"$(true)\"", "$()", "``",
             "$(echo \"a)b\")", "$(echo '(')", "$(echo $(echo nested))", "`echo \\`echo nested\\``",
             "$(echo `echo mixed`)", "`echo 'a\\$b' \\$HOME`", "$(echo '*')",
             "$(printf 'p\\\\q\"r$HOME`s')", "\"$(printf 'p\\\\q\"r$HOME`s')\"",
             "$(printf '\\t\\t')", "$(echo x; exit 3)", "$(exit 3)", "$(kill -9 $$)",
             "'$(echo no)'", "\\$\\(echo no\\)", "\"\\$(echo no)\"", "$(echo \"$0\")",
             "\"\"$(echo q)", "~$(echo x)", "X=~$(echo x)", "~/$(echo x)", "a~$(echo x)",
             "X=~/a:~/$(echo b)", "$(printf 'a\\377b')");
}

static void c_context(void) {
  EXPAND_ALL("$(( $(echo 3) + 4 ))", "$[ `echo 2` * 3 ]", "$((1+2))x$(echo y)",
             "$((echo sub);(echo shell))", "${NO:-$(echo hi there)}", "\"${NO:-$(echo hi there)}\"",
             "${NO:-`echo hi`}", "${NO-'$(echo q)'}", "${NO:-a\\$b$(echo c)}", "${SET%$(echo ue)}",
             "${SET#$(echo va)}", "${#SET}$(echo x)", "$SET$(echo x)", "${NO:-{a}$(echo x)}",
             "${NO+$(echo x)}y", "${SET+$(echo x)}y", "${SET:=$(echo x)}y", "$$(echo x)",
             "${}$(echo x)", "${NO:-$(echo })}", "*$(echo x)", "no*`echo x`", "no?\"$(echo a b)\"",
             "no*$(echo a b)c", "scri*$(echo p)*", "$#$(echo x)", "${1-$(echo x)}");
}

static void c_errors(void) {
  EXPAND_ALL("$(echo x", "`echo x", "\"$(echo x\"", "a;$(echo x)", "$(echo x);b", "$(echo x)\"",
             "$(if)", "$(echo a; if)", "`(`", "$(( $(echo 1) ", "${NO:-$(echo x)", "$(echo x)\\",
             "{$(echo x)}", "$(( $(echo x; if) ))", "${NO?$(echo message)}", "${:-$(echo x)}",
             "$(( 1; $(echo x) ))");
}

static void c_separators(void) {
  static const char* const separators[] = {":", ": ", "", "x\n", " \n", "\n"};
  for (size_t i = 0; i < sizeof(separators) / sizeof(separators[0]); ++i) {
    setenv("IFS", separators[i], 1);
    SAY("IFS=%s\n", separators[i]);
    EXPAND_ALL("$(printf 'a:b::c')", "$(printf ':a: :b')", "p$(printf 'a :b : c')q", "$(printf ::)",
               "$(printf 'a\\n\\nb\\n\\n')", "$(printf '\\n a \\n')", "$(printf '1x2x')3",
               "$(env | grep -c IFS=)");
  }
}

static int exists(const char* path) { return access(path, F_OK) == 0; }

static void c_flags(void) {
  expand("$(echo x)", WRDE_NOCMD);
  expand("`echo x`", WRDE_NOCMD);
  expand("$((1+2)) $SET", WRDE_NOCMD);
  expand("$SET plain", 0);
  expand("$NO$(echo x)", WRDE_UNDEF);
  expand("${NO-$(touch touched)}", WRDE_UNDEF);
  expand("${SET-$(touch touched)}", 0);
  expand("${NO+$(touch touched)}", 0);
  expand("a;$(touch touched)", 0);
  expand("{$(touch touched)}", 0);
  expand("$(( 1; $(touch touched) ))", 0);
  expand("'$(touch touched)'", 0);
  expand("${-$(touch touched)}", 0);
  expand("$$(touch touched)", 0);
  expand("~$(touch touched)", 0);
  expand("\\$\\(touch touched)", 0);
  expand("$(touch touched", 0);
  SAY("no command was run: %d\n", !exists("touched"));
  dup2(1, 2);
  expand("$(echo hidden >&2)", 0);
  expand("$(echo shown >&2)", WRDE_SHOWERR);
  words.we_offs = 2;
  SAY("dooffs %d\n", wordexp("$(echo a b)", &words, WRDE_DOOFFS));
  SAY("append %d\n", wordexp("$(echo c) d", &words, WRDE_DOOFFS | WRDE_APPEND));
  for (size_t i = 0; i < words.we_wordc; ++i) SAY(" [%s]", words.we_wordv[i + 2]);
  SAY(" offs %d\n", words.we_wordv[0] == NULL && words.we_wordv[1] == NULL);
  SAY("reuse %d\n", wordexp("$(echo e)", &words, WRDE_REUSE));
  for (size_t i = 0; i < words.we_wordc; ++i) SAY(" [%s]\n", words.we_wordv[i]);
  wordfree(&words);
}

// Nothing stays behind: variables, children, descriptors.
static void c_leftovers(void) {
  size_t before = 0, after = 0;
  while (environ[before] != NULL) ++before;
  expand("$(echo a b c) \"$(env | grep -c AIRLOCK_WORD)\" ${NO:-$(env | grep -c AIRLOCK_WORD)}", 0);
  while (environ[after] != NULL) ++after;
  SAY("environment kept: %d\n", before == after);
  SAY("no child left %d\n", waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
  SAY("lowest free fd %d\n", dup(0));
}

const struct Case word_cases[] = {
    {"words_commands", "words", STUB_RUNS, c_commands},
    {"words_context", "words", STUB_RUNS, c_context},
    {"words_errors", "words", STUB_RUNS, c_errors},
    {"words_separators", "words", STUB_RUNS, c_separators},
    {"words_flags", "words", STUB_RUNS, c_flags},
    {"words_leave_nothing", "words", STUB_RUNS, c_leftovers},
    {NULL, NULL, 0, NULL},
};
