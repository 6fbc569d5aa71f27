#include "contexts/environment.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <string_view>

using namespace contexts;

namespace {

constexpr std::string_view kSecret = "sk-canary-9f8e7d";

// The merge with one environment for invoker and agent start, as in a daemon.
RoutedEnvironment route(const Environment& start, const Environment& child,
                        const EnvPolicy& policy = {}) {
  const EnvFilter filter(policy, start);
  return routed_environment({start, start, child, filter, policy.pinned, policy.base});
}

EnvPolicy inheriting() {
  EnvPolicy policy;
  policy.base = EnvPolicy::Base::inherit;
  return policy;
}

bool has(const Environment& env, std::string_view entry) {
  return std::ranges::find(env, entry) != env.end();
}

}  // namespace

TEST_CASE("block_env of everything makes pass_env an allow-list", "[contexts]") {
  EnvPolicy policy = inheriting();
  policy.block_env = {"*"};
  policy.pass_env = {"PATH", "MY_*"};
  CHECK(route({"PATH=/bin", "A=1"}, {"PATH=/bin", "A=2", "MY_X=3"}, policy).env ==
        Environment{"PATH=/bin", "MY_X=3"});
}

TEST_CASE("the clean base takes basic names only", "[contexts]") {
  const Environment start{"PATH=/bin", "HOME=/root", "USER=u",     "LOGNAME=u", "SHELL=/bin/sh",
                          "LANG=C",    "LC_ALL=C",   "LC_TIME=de", "TERM=dumb", "TZ=UTC",
                          "EDITOR=vi", "FOO=1",      "LC=1",       "no-equals", "PATHS=1"};
  const Environment basic(start.begin(), start.begin() + 10);
  CHECK(route(start, start).env == basic);
  CHECK(route(start, start, inheriting()).env == start);
}

TEST_CASE("what the child changed or added arrives, in its order", "[contexts]") {
  const Environment start{"PATH=/bin", "HOME=/root", "TZ=CET", "FOO=1"};
  const Environment child{"CLAUDECODE=1", "PATH=/venv/bin:/bin", "FOO=1", "HOME=/root",
                          "TZ=",          "VIRTUAL_ENV=/venv"};
  CHECK(route(start, child).env == Environment{"CLAUDECODE=1", "PATH=/venv/bin:/bin", "HOME=/root",
                                               "TZ=", "VIRTUAL_ENV=/venv"});
}

TEST_CASE("what the child removed is removed", "[contexts]") {
  const Environment start{"PATH=/bin", "HOME=/root", "TZ=CET", "FOO=1"};
  CHECK(route(start, {"PATH=/bin"}, inheriting()).env == Environment{"PATH=/bin"});
  CHECK(route(start, {"TZ=UTC"}).env == Environment{"TZ=UTC"});
}

TEST_CASE("env -i leaves what is pinned and what the agent never had", "[contexts]") {
  const Environment start{"PATH=/bin", "HOME=/root"};
  const Environment invoker{"PATH=/bin", "HOME=/root", "TERM=xterm", "LANG=C"};
  EnvPolicy policy;
  policy.pinned = {"HOME=/home/user"};
  const EnvFilter filter(policy, start);
  const auto routed =
      routed_environment({invoker, start, {}, filter, policy.pinned, EnvPolicy::Base::clean});
  CHECK(routed.env == Environment{"TERM=xterm", "LANG=C", "HOME=/home/user"});
  CHECK(route(start, {}).env.empty());
}

TEST_CASE("pinned variables win and come last", "[contexts]") {
  EnvPolicy policy;
  policy.pinned = {"PATH=/user/bin", "NPM_TOKEN=of-the-user", "EMPTY="};
  CHECK(route({"PATH=/bin", "TZ=CET"}, {"PATH=/x", "EMPTY=1", "TZ=CET"}, policy).env ==
        Environment{"TZ=CET", "PATH=/user/bin", "NPM_TOKEN=of-the-user", "EMPTY="});
  CHECK(route({"PATH=/bin"}, {}, policy).env == policy.pinned);
}

TEST_CASE("base variables that the child does not know follow the child's", "[contexts]") {
  const EnvFilter filter({}, {});
  const auto routed = routed_environment({Environment{"TERM=xterm", "LANG=C", "A=1"},
                                          {},
                                          Environment{"B=2", "LANG=C"},
                                          filter,
                                          {},
                                          EnvPolicy::Base::inherit});
  CHECK(routed.env == Environment{"B=2", "LANG=C", "TERM=xterm", "A=1"});
}

TEST_CASE("blocked variables are reported by name and reason, once", "[contexts]") {
  const std::string secret(kSecret);
  const Environment start{"PATH=/bin", "MY_KEY=" + secret, "LD_PRELOAD=/a.so"};
  const auto routed = route(start,
                            {"PATH=/bin", "MY_KEY=changed-value", "LD_PRELOAD=/b.so", "X=" + secret,
                             "U=http://u:p@h", secret + "=1", secret},
                            inheriting());
  CHECK(routed.env == Environment{"PATH=/bin"});
  CHECK(routed.blocked == std::vector<BlockedName>{{"MY_KEY", Verdict::secret_name},
                                                   {"LD_PRELOAD", Verdict::loader},
                                                   {"X", Verdict::secret_value},
                                                   {"U", Verdict::url_password},
                                                   {"(withheld)", Verdict::secret_value}});
}

TEST_CASE("a blocked change leaves the base's value", "[contexts]") {
  const Environment start{"MODE=dev", "DB_PASSWORD=" + std::string(kSecret)};
  const auto routed = route(start, {"MODE=" + std::string(kSecret)}, inheriting());
  CHECK(routed.env == Environment{"MODE=dev"});
  CHECK(routed.blocked == std::vector<BlockedName>{{"MODE", Verdict::secret_value}});
}

TEST_CASE("duplicates are carried together", "[contexts]") {
  const Environment start{"A=1", "A=2", "PATH=/bin", "PATH=/sbin"};
  CHECK(route(start, start).env == Environment{"PATH=/bin", "PATH=/sbin"});
  CHECK(route(start, {"PATH=/sbin", "PATH=/bin", "A=1", "A=2"}).env ==
        Environment{"PATH=/sbin", "PATH=/bin"});
  CHECK(route(start, {"A=1", "B=0", "A=3"}).env == Environment{"A=1", "B=0", "A=3"});
  CHECK(route(start, {"A=1"}).env == Environment{"A=1"});  // one fewer is a change
  CHECK(route(start, {"A=1", "A=2", "A=2"}).env == Environment{"A=1", "A=2", "A=2"});
  CHECK(route(start, {"A=ok", "A=http://u:p@h", "A=ok"}).env.empty());
}

TEST_CASE("entries without '=' pass and are not the variable of that name", "[contexts]") {
  CHECK(route({"FOO"}, {"FOO", "BAR"}).env == Environment{"BAR"});
  CHECK(route({"FOO"}, {"FOO", "FOO=", ""}, inheriting()).env == Environment{"FOO", "FOO=", ""});
  CHECK(route({"PATH=/bin"}, {"PATH"}).env == Environment{"PATH"});  // PATH= is gone
}

TEST_CASE("values are bytes", "[contexts]") {
  const Environment child{"NL=a\nb\n", "BIN=\xff\x01\x80", "EQ=a=b==", "=x=y", "SPACE NAME= "};
  CHECK(route({}, child).env == child);
}

TEST_CASE("git's numbered configuration is carried whole or switched off", "[contexts]") {
  Environment child{"GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_0=a.b", "GIT_CONFIG_VALUE_0=c",
                    "GIT_CONFIG_KEY_1=d.e", "GIT_CONFIG_VALUE_1=f"};
  CHECK(route({}, child).env == child);
  child[3] = "GIT_CONFIG_KEY_1=url.https://u:p@h/.insteadof";
  const auto routed = route({}, child);
  CHECK_FALSE(has(routed.env, "GIT_CONFIG_COUNT=2"));
  CHECK(routed.blocked.back() == BlockedName{"GIT_CONFIG_COUNT", Verdict::url_password});
}

TEST_CASE("git's numbered configuration is carried whole if any of it changed", "[contexts]") {
  const Environment start{"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=a.b", "GIT_CONFIG_VALUE_0=c"};
  Environment child = start;
  child[0] = "GIT_CONFIG_COUNT=2";
  child.insert(child.end(), {"GIT_CONFIG_KEY_1=d.e", "GIT_CONFIG_VALUE_1=f"});
  CHECK(route(start, child).env == child);
  child = start;
  child[2] = "GIT_CONFIG_VALUE_0=changed";
  CHECK(route(start, child).env == child);
  CHECK(route(start, start).env.empty());
}

TEST_CASE("thousands of blocked variables are reported in linear time", "[contexts]") {
  Environment child;
  for (int i = 0; i < 50'000; ++i) child.push_back("V" + std::to_string(i) + "_KEY=1");
  CHECK(route({}, child).blocked.size() == child.size());
}
