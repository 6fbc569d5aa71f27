// The persistent shell against everything that breaks shells: what users type, and what the shells
// of others were seen to hang on, lose or garble. A real bash, no context around it.

#include "contexts/shell/host.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "base/file.h"
#include "tests/support/shell_host.h"
#include "tests/support/temp_dir.h"

using support::ShellHost;
using wire::ShellEvent;

namespace {

/// What runs the commands: bash with airlock's builtin, or a plain one that it does not fit.
enum class With { builtin, loop };

struct Shell : ShellHost {
  explicit Shell(With with)
      : ShellHost("/bin/bash", with == With::builtin
                                   ? Libraries{}
                                   : Libraries{.loadable = "/nonexistent/airlock-shell.so"}),
        /// When a command has ended the shell.
        event(with == With::builtin ? ShellEvent::recovered : ShellEvent::lost) {}

  ShellEvent event;
};

/// For what holds whatever runs the commands.
With each_engine() {
  const auto with = GENERATE(With::builtin, With::loop);
  UNSCOPED_INFO((with == With::builtin ? "with the builtin" : "a plain bash"));
  return with;
}

struct Step {
  std::string command;
  std::string ending = "exit 0";
  std::string output{};
  std::string errors{};  ///< contained in stderr; "" = stderr is empty
  ShellEvent event = ShellEvent::none;
};

/// `ended`: the event where the table says recovered.
void run_steps(ShellHost& shell, const std::vector<Step>& steps,
               ShellEvent ended = ShellEvent::recovered) {
  for (const auto& step : steps) {
    CAPTURE(step.command);
    const auto result = shell.run(step.command);
    CAPTURE(result.errors, result.refused.value_or(wire::NotStarted{}).message);
    CHECK(result.ending() == step.ending);
    CHECK(result.output == step.output);
    if (step.errors.empty()) {
      CHECK(result.errors.empty());
    } else {
      CHECK(result.errors.find(step.errors) != std::string::npos);
    }
    REQUIRE(result.exited);
    CHECK(result.exited->shell.event == (step.event == ShellEvent::recovered ? ended : step.event));
    CHECK_FALSE(result.exited->timed_out);
  }
}

void run_steps(Shell& shell, const std::vector<Step>& steps) {
  run_steps(shell, steps, shell.event);
}

void run_steps(With with, const std::vector<Step>& steps) {
  Shell shell(with);
  run_steps(shell, steps);
}

void run_steps(const std::vector<Step>& steps) { run_steps(With::builtin, steps); }

/// A zombie is not alive: its pidfd is readable (pidfd_open(2)). Waits a while for the end if
/// `is_expected_to_end`.
bool is_alive(std::uint32_t pid, bool is_expected_to_end = false) {
  const base::UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!process) return false;
  return !support::await_readable(process.borrow(), is_expected_to_end ? support::kDeadlineMs : 0);
}

}  // namespace

TEST_CASE("a shell keeps its folder, variables, functions, aliases, options and umask", "[shell]") {
  run_steps(
      each_engine(),
      {
          {"cd /usr; A=1; f() { echo fn $A; }; alias ll='echo LL'; set -o pipefail; umask 027"},
          {"pwd; f; ll; false | true; echo $?; umask", "exit 0", "/usr\nfn 1\nLL\n1\n0027\n"},
          {"false", "exit 1"},
          {"echo $?", "exit 0", "1\n"},
      });
}

TEST_CASE("here-documents, finished or not, end with their command", "[shell]") {
  run_steps(each_engine(), {
                               {"cat <<'EOF'\nline $one\nEOF\n", "exit 0", "line $one\n"},
                               {"cat <<EOF\nlost end\n", "exit 0", "lost end\n", "here-document"},
                               {"echo ok", "exit 0", "ok\n"},
                           });
}

TEST_CASE("a syntax error is the command's, in bash's own words", "[shell]") {
  run_steps(each_engine(),
            {
                {"echo \"abc", "exit 2", "", "unexpected EOF while looking for matching"},
                {"echo a; }", "exit 2", "", "syntax error near unexpected token `}'"},
                {"if true; then", "exit 2", "", "syntax error: unexpected end of file"},
                {"echo hi \\", "exit 0", "hi \\\n"},
                {"echo ok", "exit 0", "ok\n"},
            });
}

TEST_CASE("what ends a shell is the command's result, and the shell goes on", "[shell]") {
  const std::string ended = GENERATE(as<std::string>(), "exit 42", "set -e; (exit 42); echo no",
                                     "exec sh -c 'exit 42'", "trap 'exit 42' EXIT; exit");
  CAPTURE(ended);
  ShellHost shell;
  run_steps(shell, {{"cd /usr; A=1; f() { echo fn; }; trap 'echo bye' USR1"}});
  const auto result = shell.run(ended);
  CHECK(result.ending() == "exit 42");
  CHECK(result.exited->shell.event == ShellEvent::recovered);
  run_steps(shell, {{"echo $A $PWD; f; set -o | grep errexit; trap -p USR1", "exit 0",
                     "1 /usr\nfn\nerrexit        \toff\ntrap -- 'echo bye' SIGUSR1\n"}});
}

TEST_CASE("exit runs the EXIT trap, and the trap stays", "[shell]") {
  run_steps({
      {"trap 'echo bye' EXIT"},
      {"exit 4", "exit 4", "bye\n", "", ShellEvent::recovered},
      {"kill -9 $$", "signal 9", "", "", ShellEvent::recovered},
      {"exit 5", "exit 5", "bye\n", "", ShellEvent::recovered},
  });
}

TEST_CASE("set -e works, also in the middle of a command", "[shell]") {
  run_steps(each_engine(),
            {{"set -e\nfalse\necho survived", "exit 1", "", "", ShellEvent::recovered}});
}

TEST_CASE("an unset variable ends the command as in bash -c", "[shell]") {
  run_steps({
      {"A=1"},
      {"set -u; echo $NOPE", "exit 127", "", "NOPE: unbound variable", ShellEvent::recovered},
      {"echo ${N:?msg}", "exit 127", "", "N: msg", ShellEvent::recovered},
      {"echo $A", "exit 0", "1\n"},
  });
}

TEST_CASE("exec of a program shows all its output", "[shell]") {
  Shell shell(each_engine());
  const auto result = shell.run("exec seq 1 2000");
  CHECK(result.ending() == "exit 0");
  CHECK(result.output.ends_with("1999\n2000\n"));
  run_steps(shell, {{"echo ok", "exit 0", "ok\n"}});
}

TEST_CASE("nothing the user redefines reaches what runs the commands", "[shell]") {
  run_steps(
      each_engine(),
      {
          {"PATH=/nonexistent; echo() { :; }; printf() { :; }; builtin() { :; }; eval() { :; }; "
           "log=1; dir=2; EXIT_CODE=3; IFS=,; alias mv=false; set -C"},
          {"command true"},
          {"declare -p log dir EXIT_CODE", "exit 0",
           "declare -- log=\"1\"\ndeclare -- dir=\"2\"\ndeclare -- EXIT_CODE=\"3\"\n"},
      });
}

TEST_CASE("tracing shows the user's commands and nothing else", "[shell]") {
  const auto with = each_engine();
  // What is evaluated by a command of bash is one level in.
  const std::string level = with == With::builtin ? "+ " : "++ ";
  Shell shell(with);
  CHECK(shell.run("set -x; echo a").errors == level + "echo a\n");
  CHECK(shell.run("echo b").errors == level + "echo b\n");
  CHECK(shell.run("set +x; echo $-").output.find('x') == std::string::npos);
  CHECK(shell.run("echo c").errors.empty());
}

TEST_CASE("output is bytes", "[shell]") {
  using namespace std::string_literals;
  run_steps({
      {"printf 'a\\0b\\xff'", "exit 0", "a\0b\xff"s},
      {"printf foo", "exit 0", "foo"},
      {"echo foo", "exit 0", "foo\n"},
      {"printf '###PS1END###\\n__EXIT_CODE__:0\\n\\x02\\x02x\\n\\033[2J\\033c'; exit 3", "exit 3",
       "###PS1END###\n__EXIT_CODE__:0\n\x02\x02x\n\033[2J\033c", "", ShellEvent::recovered},
  });
}

TEST_CASE("standard input is the requester's, and its end is seen", "[shell]") {
  Shell shell(each_engine());
  CHECK(shell.run("cat", {.standard_input = "abc"}).output == "abc");
  CHECK(shell.run("wc -c", {.standard_input = "abc"}).output == "3\n");
  CHECK(shell.run("cat; cat /dev/stdin; echo end").output == "end\n");
}

TEST_CASE("a background job neither holds its command nor dies with it", "[shell]") {
  Shell shell(each_engine());
  const auto result = shell.run("sleep 1000 & echo started");
  CHECK(result.ending() == "exit 0");
  CHECK(result.output == "started\n");
  REQUIRE(result.exited->shell.background.size() == 1);
  const auto pid = result.exited->shell.background.front();
  CHECK(is_alive(pid));
  const auto next = shell.run("jobs");
  CHECK(next.output.find("sleep 1000 &") != std::string::npos);
  CHECK(next.exited->shell.background.empty());
  CHECK(shell.run("kill %1; wait %1; echo $?").output == "143\n");
  CHECK_FALSE(is_alive(pid, true));
}

TEST_CASE("a job that is left behind goes on when the shell is replaced", "[shell]") {
  ShellHost shell;
  const auto left = shell.run("sleep 1000 & echo");
  REQUIRE(left.exited->shell.background.size() == 1);
  const auto pid = left.exited->shell.background.front();
  CHECK(shell.run("exit 3").ending() == "exit 3");
  CHECK(is_alive(pid));
  CHECK(shell.run("jobs; wait; echo done").output == "done\n");
  ::kill(static_cast<pid_t>(pid), SIGKILL);
}

TEST_CASE("a time limit ends the command and keeps the shell", "[shell]") {
  Shell shell(each_engine());
  run_steps(shell, {{"cd /usr; A=1"}});
  const auto result = shell.run("sleep 1000", {.time_limit_ms = 100});
  CHECK(result.ending() == "signal 15");
  CHECK(result.exited->timed_out);
  CHECK(result.exited->shell.event == ShellEvent::none);
  run_steps(shell, {{"echo $A $PWD", "exit 0", "1 /usr\n"}});
}

TEST_CASE("a time limit ends what ignores SIGTERM, what was detached, and loops", "[shell]") {
  const std::string command = GENERATE(as<std::string>(), "while :; do :; done",
                                       "while :; do sleep 1000; done", "trap '' TERM; sleep 1000",
                                       "bash -c 'trap \"\" TERM; while :; do sleep 1000; done'");
  CAPTURE(command);
  ShellHost shell;
  run_steps(shell, {{"A=1"}});
  const auto result =
      shell.run("echo begun; " + command, {.time_limit_ms = 100, .kill_grace_ms = 100});
  CHECK(result.ending() == "signal 9");
  CHECK(result.output == "begun\n");
  CHECK(result.exited->timed_out);
  run_steps(shell, {{"echo $A", "exit 0", "1\n"}});
}

TEST_CASE("a time limit reaches children of another session, and no earlier job", "[shell]") {
  const support::TempDir folder;
  Shell shell(each_engine());
  const auto earlier = shell.run("sleep 1000 & echo").exited->shell.background;
  REQUIRE(earlier.size() == 1);
  const std::string file = folder.path() + "/pid";
  const auto result =
      shell.run("setsid sh -c 'echo $$ >" + file + "; exec sleep 1000' & sleep 1000",
                {.time_limit_ms = 300, .kill_grace_ms = 100});
  CHECK(result.exited->timed_out);
  const auto detached = base::read_file(file);
  REQUIRE(detached);
  CHECK_FALSE(is_alive(static_cast<std::uint32_t>(std::atoi(detached->c_str())), true));
  CHECK(is_alive(earlier.front()));
  ::kill(static_cast<pid_t>(earlier.front()), SIGKILL);
}

TEST_CASE("a command within its limit is not timed out by what it leaves", "[shell]") {
  Shell shell(each_engine());
  const auto result = shell.run("sh -c 'sleep 1000 &'", {.time_limit_ms = 60'000});
  CHECK(result.ending() == "exit 0");
  CHECK_FALSE(result.exited->timed_out);
}

TEST_CASE("Ctrl-C ends a loop and its program", "[shell]") {
  ShellHost shell;
  run_steps(shell, {{"A=1"}});
  auto pending = shell.start("echo ready; while :; do sleep 1000; done");
  CHECK(support::await_readable(pending.output.borrow()));
  pending.job.send(wire::Signal{SIGINT});
  CHECK(ShellHost::finish(std::move(pending)).ending() == "signal 2");
  run_steps(shell, {{"echo $A", "exit 0", "1\n"}});
}

TEST_CASE("a requester that goes away takes its command with it, and only that", "[shell]") {
  Shell shell(each_engine());
  run_steps(shell, {{"A=1"}});
  auto pending = shell.start("echo ready; sleep 1000");
  CHECK(support::await_readable(pending.output.borrow()));
  auto waiting = shell.start("echo never");
  auto last = shell.start("echo $A");
  waiting.job.disconnect();
  pending.job.disconnect();
  CHECK(ShellHost::finish(std::move(last)).output == "1\n");
  CHECK(support::read_to_end(waiting.output.borrow()).empty());
}

TEST_CASE("commands run in the order they came", "[shell]") {
  Shell shell(each_engine());
  std::vector<ShellHost::Pending> all;
  for (int i = 0; i < 20; ++i) all.push_back(shell.start("n=$((n+1)); echo $n"));
  for (int i = 0; i < 20; ++i) {
    CHECK(ShellHost::finish(std::move(all[static_cast<std::size_t>(i)])).output ==
          std::to_string(i + 1) + "\n");
  }
}

TEST_CASE("whoever does not want to wait is told who is before him", "[shell]") {
  Shell shell(each_engine());
  auto pending = shell.start("echo ready; read -r; echo $REPLY", {.standard_input = "x\n"});
  const auto refused = shell.run("echo no", {.fail_if_busy = true});
  // The first may have ended by now: then there was nobody to wait for.
  if (refused.refused) {
    CHECK(refused.refused->error == EBUSY);
    CHECK(refused.refused->message.find("busy with job 16") != std::string::npos);
  }
  CHECK(ShellHost::finish(std::move(pending)).output == "ready\nx\n");
  auto blocked = shell.start("echo ready; sleep 1000");
  CHECK(support::await_readable(blocked.output.borrow()));
  CHECK(shell.run("echo no", {.fail_if_busy = true}).refused->error == EBUSY);
  blocked.job.disconnect();
}

TEST_CASE("environment and folder of one command do not stay", "[shell]") {
  Shell shell(each_engine());
  run_steps(shell, {{"cd /usr; export A=old; B=unexported"}});
  CHECK(shell
            .run("echo $A $B $C $PWD; A=changed; cd /etc",
                 {.env = {"A=a", "B=b", "C=c d'\"$"}, .cwd = "/tmp"})
            .output == "a b c d'\"$ /tmp\n");
  run_steps(shell, {{"echo $A $B ${C-unset} $PWD; env | grep -c '^B='", "exit 1",
                     "old unexported unset /usr\n0\n"}});
  const auto refused = shell.run("echo no", {.cwd = "/nonexistent"});
  REQUIRE(refused.refused);
  CHECK(refused.refused->error == ENOENT);
  CHECK(refused.output.empty());
  run_steps(shell, {{"pwd", "exit 0", "/usr\n"}});
}

TEST_CASE("what a context sets reaches the shell at its next command, as it is", "[shell]") {
  Shell shell(each_engine());
  run_steps(shell, {{"export GONE=1; cd /"}});
  shell.tell(wire::ShellUpdate{{"A=it's \"$(no)\" \n`x`"}, {"GONE"}, "/usr"});
  run_steps(shell, {{"printf %s \"$A\"; echo ${GONE-gone} $PWD", "exit 0",
                     "it's \"$(no)\" \n`x`gone /usr\n"},
                    {"env | grep -c \"^A=it's\"", "exit 0", "1\n"}});
}

TEST_CASE("of what a context sets the last word counts, also for a shell that comes later",
          "[shell]") {
  Shell shell(each_engine());
  run_steps(shell, {{"true"}});
  shell.tell(wire::ShellUpdate{{"A=1"}, {"B"}, "/usr"});
  shell.tell(wire::ShellUpdate{{"B=2"}, {"A"}, "/etc"});
  run_steps(shell,
            {{"echo ${A-none} $B $PWD", "exit 0", "none 2 /etc\n"}, {"unset B; cd /", "exit 0"}});
  CHECK(shell.run("exit 1", {.no_checkpoint = true}).exited->shell.event == ShellEvent::lost);
  run_steps(shell, {{"echo ${A-none} $B $PWD", "exit 0", "none 2 /etc\n"}});
}

TEST_CASE("no command runs elsewhere because the context's folder is missing", "[shell]") {
  Shell shell(each_engine());
  run_steps(shell, {{"cd /usr"}});
  shell.tell(wire::ShellUpdate{{"A=1"}, {}, "/nonexistent"});
  for (int i = 0; i < 2; ++i) {
    const auto refused = shell.run("pwd");
    REQUIRE(refused.refused);
    CHECK(refused.refused->message.find("context's working directory /nonexistent") !=
          std::string::npos);
  }
  shell.tell(wire::ShellUpdate{{}, {}, "/etc"});
  run_steps(shell, {{"echo $A $PWD", "exit 0", "1 /etc\n"}});
}

TEST_CASE("a shell tells what it does", "[shell]") {
  ShellHost shell;
  CHECK(shell.order(wire::ShellOrder::Action::tell).engine == wire::ShellEngine::none);
  const auto left = shell.run("cd /usr; sleep 1000 &").exited->shell.background;
  auto first = shell.start("echo ready; sleep 1000");
  CHECK(support::await_readable(first.output.borrow()));
  auto second = shell.start("echo never");
  const auto state = shell.order(wire::ShellOrder::Action::tell);
  CHECK(state.engine == wire::ShellEngine::builtin);
  CHECK(state.cwd == "/usr");
  CHECK(state.background == left);
  REQUIRE(state.jobs.size() == 2);
  CHECK(state.jobs[0].pid == state.pid);
  CHECK(state.jobs[1].pid == 0);
  first.job.disconnect();
  const auto after = ShellHost::finish(std::move(second));
  CHECK(after.ending() == "exit 0");
  CHECK(after.errors.empty());
  CHECK(after.output == "never\n");
  CHECK(is_alive(left.front()));
  ::kill(static_cast<pid_t>(left.front()), SIGKILL);
}

TEST_CASE("an interrupt ends the running command and nothing else", "[shell]") {
  ShellHost shell;
  CHECK(shell.order(wire::ShellOrder::Action::interrupt).reached == 0);
  run_steps(shell, {{"A=1"}});
  auto loop = shell.start("echo ready; while :; do :; done");
  CHECK(support::await_readable(loop.output.borrow()));
  CHECK(shell.order(wire::ShellOrder::Action::interrupt).reached == 1);
  CHECK(ShellHost::finish(std::move(loop)).ending() == "signal 2");
  run_steps(shell, {{"echo $A", "exit 0", "1\n"}});
}

TEST_CASE("a reset leaves nothing of a shell, detached jobs included", "[shell]") {
  ShellHost shell;
  const auto left = shell.run("setsid sleep 1000 & echo").exited->shell.background;
  REQUIRE(left.size() == 1);
  auto stuck = shell.start("trap '' INT TERM; echo ready; while :; do :; done");
  CHECK(support::await_readable(stuck.output.borrow()));
  auto waiting = shell.start("echo never");
  const auto state = shell.order(wire::ShellOrder::Action::reset);
  CHECK(state.reached >= 3);  // the shell, its copy, the job
  CHECK(state.survivors == 0);
  CHECK_FALSE(is_alive(left.front()));
  const auto ended = ShellHost::finish(std::move(stuck));
  CHECK(ended.ending() == "signal 9");
  CHECK(ended.exited->shell.event == ShellEvent::lost);
  const auto refused = ShellHost::finish(std::move(waiting)).refused;
  REQUIRE(refused);
  CHECK(refused->error == ECANCELED);
}

TEST_CASE("the result tells the folder and the names that changed", "[shell]") {
  Shell shell(each_engine());
  run_steps(shell, {{"cd /; export A=1 B=2"}});
  const auto result = shell.run("cd /usr; export C=3; unset A; local=1; B=2").exited->shell;
  CHECK(result.cwd == "/usr");
  auto names = result.changed_env.strings();
  std::sort(names.begin(), names.end());
  CHECK(names == std::vector<std::string>{"A", "C", "OLDPWD", "PWD"});
}

TEST_CASE("a shell that holds a pipe or a lock is not copied, and says so", "[shell]") {
  const support::TempDir folder;
  const auto [hold, release, why] = GENERATE(table<std::string, std::string, std::string>({
      {"exec 3> >(cat >/dev/null)", "exec 3>&-", "pipe"},
      {"exec 9>$FOLDER/lock; flock 9", "exec 9>&-", "lock"},
      {"coproc cat", "kill $!; wait; exec {COPROC[0]}<&- {COPROC[1]}>&-", "pipe"},
  }));
  CAPTURE(hold);
  ShellHost shell;
  const auto held = shell.run(hold, {.env = {"FOLDER=" + folder.path()}});
  CHECK(held.ending() == "exit 0");
  CHECK(held.exited->shell.no_checkpoint.empty());
  CHECK(shell.run("true").exited->shell.no_checkpoint.find(why) != std::string::npos);
  shell.run(release);
  CHECK(shell.run("true").exited->shell.no_checkpoint.empty());
}

TEST_CASE("without a copy the state is lost and the next command gets a fresh shell", "[shell]") {
  Shell shell(each_engine());
  run_steps(shell, {{"A=1"}});
  const auto result = shell.run("exit 7", {.no_checkpoint = true});
  CHECK(result.ending() == "exit 7");
  CHECK(result.exited->shell.event == ShellEvent::lost);
  CHECK_FALSE(result.exited->shell.no_checkpoint.empty());
  run_steps(shell, {{"echo ${A-fresh}", "exit 0", "fresh\n"}});
}

TEST_CASE("neither traps nor wait hear of the copies", "[shell]") {
  run_steps(each_engine(), {
                               {"trap 'echo CHLD' CHLD; true"},
                               {"true"},
                               {"wait; echo waited", "exit 0", "waited\n"},
                               {"/bin/true; :", "exit 0", "CHLD\n"},
                           });
}

TEST_CASE("a command of megabytes arrives whole", "[shell]") {
  Shell shell(each_engine());
  const std::string text(3 << 20, 'x');
  CHECK(shell.run("A='" + text + "'; echo ${#A}").output == std::to_string(text.size()) + "\n");
}

TEST_CASE("two thousand commands leave no process and no descriptor behind", "[shell]") {
  Shell shell(each_engine());
  const std::string census = "ls /proc/self/fd | wc -l; ls /proc/$PPID/fd | wc -l";
  shell.run("true");
  const auto before = shell.run(census).output;
  for (int i = 0; i < 1000; ++i) {
    const bool ends = i % 50 == 0;
    REQUIRE(shell.run(ends ? "exit 1" : ":").ending() == (ends ? "exit 1" : "exit 0"));
  }
  CHECK(shell.run(census).output == before);
  const auto children = base::read_file("/proc/" + std::to_string(shell.pid()) + "/task/" +
                                        std::to_string(shell.pid()) + "/children");
  REQUIRE(children);
  CHECK(std::count(children->begin(), children->end(), ' ') == 1);
}

TEST_CASE("where bash does not fit, each command has a shell of its own, and the result says so",
          "[shell]") {
  // Missing; no bash; a program that ends at once; one that knows no loadable builtins.
  const std::string bash =
      GENERATE(as<std::string>(), "/nonexistent/bash", "/etc/passwd", "/bin/true", "/bin/dash");
  CAPTURE(bash);
  ShellHost shell(bash);
  const auto result = shell.run("cd /; A=1; echo out; echo err >&2; exit 3");
  CHECK(result.ending() == "exit 3");
  CHECK(result.output == "out\n");
  CHECK(result.errors == "err\n");
  CHECK(result.exited->shell.engine == wire::ShellEngine::command);
  CHECK(result.exited->shell.event == ShellEvent::none);
  CHECK(result.exited->shell.no_checkpoint.find("it does not fit here: ") != std::string::npos);
  CHECK(result.exited->shell.no_checkpoint.find("bash does not work here without: ") !=
        std::string::npos);
  run_steps(shell, {{"echo ${A-none}", "exit 0", "none\n"}, {"kill -9 $$", "signal 9"}});
  CHECK(shell.run("echo $A $PWD", {.env = {"A=it's"}, .cwd = "/usr"}).output == "it's /usr\n");
  shell.tell(wire::ShellUpdate{{"B=2"}, {}, "/etc"});
  run_steps(shell, {{"echo $B $PWD", "exit 0", "2 /etc\n"}});
  const auto late = shell.run("echo begun; sleep 1000", {.time_limit_ms = 100});
  CHECK(late.ending() == "signal 15");
  CHECK(late.output == "begun\n");
  CHECK(late.exited->timed_out);
  CHECK(shell.run("true", {.cwd = "/nonexistent"}).ending() == "refused");
  CHECK(shell.order(wire::ShellOrder::Action::tell).cwd == "/etc");
}

// ---- a plain bash ----

TEST_CASE("what ends a plain bash is the command's true result, and the next gets a fresh one",
          "[shell]") {
  const auto [command, ending] = GENERATE(table<std::string, std::string>({
      {"exit 42", "exit 42"},
      {"set -e; (exit 42); echo no", "exit 42"},
      {"exec sh -c 'exit 42'", "exit 42"},
      {"trap 'exit 42' EXIT; exit", "exit 42"},
      {"set -u; echo $NOPE", "exit 1"},
      {"kill -9 $$", "signal 9"},
      {"kill $$; while :; do :; done", "signal 15"},
  }));
  CAPTURE(command);
  Shell shell(With::loop);
  run_steps(shell, {{"cd /usr; A=1"}, {"echo $A $PWD", "exit 0", "1 /usr\n"}});
  const auto result = shell.run("echo begun; " + command);
  CHECK(result.ending() == ending);
  CHECK(result.output == "begun\n");
  CHECK(result.exited->shell.event == ShellEvent::lost);
  CHECK(result.exited->shell.engine == wire::ShellEngine::loop);
  CHECK(result.exited->shell.no_checkpoint.find("/nonexistent/airlock-shell.so") !=
        std::string::npos);
  run_steps(shell, {{"echo ${A-fresh}", "exit 0", "fresh\n"}});
}

TEST_CASE("a plain bash that is another version than the builtin's says so", "[shell]") {
  const support::TempDir folder;
  const std::string bash = folder.path() + "/bash";
  auto program = base::read_file("/bin/bash");
  REQUIRE(program);
  // Its version, alone or at the start of a longer one, is one string among its read-only data.
  const std::string_view version("\0005.2\0", 5);
  std::size_t changed = 0;
  for (auto at = program->find(version); at != std::string::npos; at = program->find(version, at)) {
    program->at(at + 3) = '9';
    ++changed;
  }
  REQUIRE(changed > 0);
  REQUIRE(base::write_file(bash, *program, 0755));
  ShellHost shell(bash);
  const auto result = shell.run("A=1; echo $BASHPID");
  CHECK(result.exited->shell.engine == wire::ShellEngine::loop);
  CHECK(result.exited->shell.no_checkpoint.find("made for bash 5.2, this is 5.9") !=
        std::string::npos);
  CHECK(shell.run("echo $BASHPID").output == result.output);
  // The same file as it is on this machine: with the builtin.
  ShellHost fitting;
  CHECK(fitting.run("true").exited->shell.engine == wire::ShellEngine::builtin);
}

TEST_CASE("a bash that cannot receive descriptors is not used", "[shell]") {
  ShellHost shell("/bin/bash", {.loadable = "/etc/passwd", .receiver = "/nonexistent/receiver.so"});
  const auto result = shell.run("echo ok");
  CHECK(result.output == "ok\n");
  CHECK(result.exited->shell.engine == wire::ShellEngine::command);
  CHECK(result.exited->shell.no_checkpoint.find("/nonexistent/receiver.so") != std::string::npos);
}

TEST_CASE("a plain bash works with the requester's own descriptors", "[shell]") {
  const auto with = each_engine();
  const support::TempDir folder;
  const std::string path = folder.path() + "/file";
  REQUIRE(base::write_file(path, "one\ntwo\nthree\n", 0600));
  const auto file = base::open_file(path, O_RDWR);
  REQUIRE(file);
  ::unlink(path.c_str());
  Shell shell(with);
  // One offset for all who share the description: here, and from one command to the next.
  CHECK(shell.run("read x; echo $x", {.input_fd = file->borrow()}).output == "one\n");
  CHECK(::lseek(file->borrow(), 0, SEEK_CUR) == 4);
  CHECK(shell.run("read x; echo $x", {.input_fd = file->borrow()}).output == "two\n");
  CHECK(shell.run("printf T", {.output_fd = file->borrow()}).ending() == "exit 0");
  CHECK(shell.run("cat", {.input_fd = file->borrow()}).output == "hree\n");
  // Sockets cannot be opened by any path.
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  base::UniqueFd ours(ends[0]);
  base::UniqueFd theirs(ends[1]);
  REQUIRE(base::write_all(ours.borrow(), "question"));
  ::shutdown(ours.borrow(), SHUT_WR);
  const auto result = shell.run("cat; echo; stat -L -c %F /proc/self/fd/1",
                                {.input_fd = theirs.borrow(), .output_fd = theirs.borrow()});
  theirs.reset();
  CHECK(result.ending() == "exit 0");
  CHECK(support::read_to_end(ours.borrow()) == "question\nsocket\n");
}

TEST_CASE("a background job of a plain bash holds no second copy of a descriptor", "[shell]") {
  Shell shell(each_engine());
  auto pending = shell.start("(sleep 1000; :) >/dev/null 2>&1 & echo started");
  CHECK(support::read_to_end(pending.output.borrow()) == "started\n");
  CHECK(support::read_to_end(pending.errors.borrow()).empty());
  const auto left = ShellHost::finish(std::move(pending)).exited->shell.background;
  REQUIRE(left.size() == 1);
  ::kill(static_cast<pid_t>(left.front()), SIGKILL);
}

TEST_CASE("every byte arrives in a command, its variables and its folder", "[shell]") {
  const auto with = each_engine();
  const support::TempDir folder;
  std::string bytes;
  for (int byte = 1; byte < 256; ++byte) bytes += static_cast<char>(byte);
  std::string word = bytes;
  word.insert(word.find('\''), "'\\'");
  word.insert(word.find('\'', word.find('\'') + 3) + 1, "'");
  std::string name = bytes;
  name.erase(name.find('/'), 1);
  const std::string inner = folder.path() + "/" + name;
  REQUIRE(::mkdir(inner.c_str(), 0700) == 0);
  Shell shell(with);
  shell.tell(wire::ShellUpdate{{"SET=" + bytes}, {}, {}});
  for (const std::string locale : {"C", "C.UTF-8"}) {
    CAPTURE(locale);
    run_steps(shell, {{"export LC_ALL=" + locale}});
    CHECK(shell.run("printf %s \"$SET\"").output == bytes);
    const auto result =
        shell.run("printf %s \"$SCOPED\"; printf '|%s' '" + bytes.substr(0, 38) +
                      "'; printf '|%s' '" + bytes.substr(39) + "'; printf '|%s' \"$PWD\"",
                  {.env = {"SCOPED=" + bytes}, .cwd = inner});
    CHECK(result.output ==
          bytes + "|" + bytes.substr(0, 38) + "|" + bytes.substr(39) + "|" + inner);
    CHECK(result.errors.empty());
  }
  REQUIRE(::rmdir(inner.c_str()) == 0);
}

TEST_CASE("traps, options and functions of the user neither reach a plain bash's loop nor are lost",
          "[shell]") {
  Shell shell(With::loop);
  run_steps(
      shell,
      {
          {"f() { n=$((${n-0}+1)); }; trap f ERR; alias builtin=false eval=false; set -u +B -f -C"},
          {"echo ${n-0}", "exit 0", "0\n"},
          {"false", "exit 1"},
          {"echo $? $n", "exit 0", "1 1\n"},
          {"(exit 7)", "exit 7"},
          {"echo $? $n; trap -p ERR; trap - ERR", "exit 0", "7 2\ntrap -- 'f' ERR\n"},
          {"trap 'echo \"it'\\''s $BASH_COMMAND\"' DEBUG; A=1", "exit 0", "it's A=1\n"},
          {"B=2", "exit 0", "it's B=2\n"},
          {"trap - DEBUG", "exit 0", "it's trap - DEBUG\n"},
          {"trap -p DEBUG; echo $A $B", "exit 0", "1 2\n"},
          {"unalias -a"},
          {"builtin() { :; }; unset() { echo mine; }; set -e"},
          {"unset; declare -f builtin; builtin echo no", "exit 0",
           "mine\nbuiltin () \n{ \n    :\n}\n"},
          {"true; set +e -o posix", "exit 0"},
          {"export C=3; shopt -q expand_aliases; echo $?; set +o posix", "exit 0", "0\n"},
          {"break; continue", "exit 0", "", "only meaningful in a `for'"},
          {"return 3", "exit 2", "", "can only `return' from a function"},
          {"echo $-; f=1; shopt -q expand_aliases && ! shopt -q inherit_errexit", "exit 0",
           "fhuCs\n"},
      });
  CHECK(shell.run("true").exited->shell.event == ShellEvent::none);
}

TEST_CASE("programs of a plain bash know nothing of what was preloaded into it", "[shell]") {
  const std::string own = GENERATE(as<std::string>(), "", "libc.so.6");
  if (!own.empty()) ::setenv("LD_PRELOAD", own.c_str(), 1);
  Shell shell(With::loop);
  const auto result =
      shell.run("echo \"$LD_PRELOAD\"; env | grep -c ^LD_PRELOAD=; ls /proc/self/fd");
  ::unsetenv("LD_PRELOAD");
  CHECK(result.output == own + (own.empty() ? "\n0" : "\n1") + "\n0\n1\n2\n3\n");
  CHECK(shell.order(wire::ShellOrder::Action::tell).engine == wire::ShellEngine::loop);
}

TEST_CASE("a plain bash that executes nothing any more is replaced", "[shell]") {
  const std::string command = GENERATE(as<std::string>(), "set -n", "enable -n printf",
                                       "builtin() { :; }; readonly -f builtin");
  CAPTURE(command);
  Shell shell(With::loop);
  const auto result = shell.run("echo begun; " + command);
  CHECK(result.output == "begun\n");
  CHECK(result.ending() == "signal 9");
  CHECK(result.exited->shell.event == ShellEvent::lost);
  run_steps(shell, {{"echo ok", "exit 0", "ok\n"}});
}

TEST_CASE("a command that a plain bash cannot begin is refused, and the next gets a fresh one",
          "[shell]") {
  Shell shell(With::loop);
  const auto [command, why] = GENERATE(table<std::string, std::string>(
      {{"exec 250>&-", "send to bash"}, {"enable -n kill", "before the command began"}}));
  CAPTURE(command);
  run_steps(shell, {{command}});
  const auto refused = shell.run("echo no");
  REQUIRE(refused.refused);
  CHECK(refused.refused->message.find(why) != std::string::npos);
  CHECK(refused.output.empty());
  run_steps(shell, {{"echo ok", "exit 0", "ok\n"}});
}

TEST_CASE("the first Ctrl-C reaches what a plain bash has started, the second the shell too",
          "[shell]") {
  Shell shell(With::loop);
  run_steps(shell, {{"A=1"}});
  auto pending = shell.start("sh -c 'echo ready; exec sleep 1000'");
  CHECK(support::await_readable(pending.output.borrow()));
  pending.job.send(wire::Signal{SIGINT});
  CHECK(ShellHost::finish(std::move(pending)).ending() == "exit 130");
  run_steps(shell, {{"echo $A", "exit 0", "1\n"}});
  // What goes on all the same, as a loop does, is ended by the second.
  auto loop = shell.start("while :; do sh -c 'echo ready; exec sleep 1000'; done");
  for (int i = 0; i < 2; ++i) {
    CHECK(support::await_readable(loop.output.borrow()));
    char line[16];
    REQUIRE(::read(loop.output.borrow(), line, sizeof line) == 6);
    loop.job.send(wire::Signal{SIGINT});
  }
  const auto ended = ShellHost::finish(std::move(loop));
  CHECK(ended.ending() == "signal 2");
  CHECK(ended.exited->shell.event == ShellEvent::lost);
}

TEST_CASE("a plain bash refuses what can be no variable of a shell, and goes on", "[shell]") {
  Shell shell(With::loop);
  run_steps(shell, {{"A=1"}});
  const auto refused = shell.run("echo no", {.env = {"not-a-name=1"}});
  REQUIRE(refused.refused);
  CHECK(refused.refused->message.find("'not-a-name'") != std::string::npos);
  run_steps(shell, {{"echo $A", "exit 0", "1\n"}});
}
