#include "contexts/env_filter.h"

#include <catch2/catch.hpp>
#include <string>
#include <string_view>

using namespace contexts;

namespace {

constexpr std::string_view kSecret = "sk-canary-9f8e7d";

EnvFilter filter_for(const EnvPolicy& policy = {}, const Environment& start = {}) {
  return EnvFilter(policy, start);
}

}  // namespace

TEST_CASE("the filter blocks credentials by name", "[contexts]") {
  const std::string_view name = GENERATE(values<std::string_view>({
      "ANTHROPIC_API_KEY",
      "OPENAI_API_KEY",
      "GEMINI_API_KEY",
      "API_KEY",
      "APIKEY",
      "apiKey",
      "stripe_api_key_live",
      "OPENAI_API_KEY_2",
      "AWS_ACCESS_KEY_ID",
      "AWS_SECRET_ACCESS_KEY",
      "AWS_SESSION_TOKEN",
      "AWS_BEARER_TOKEN_BEDROCK",
      "GITHUB_TOKEN",
      "GH_TOKEN",
      "github_token",
      "TOKEN",
      "TOKEN2",
      "TF_TOKEN_app_terraform_io",
      "CLAUDE_CODE_OAUTH_TOKEN",
      "CLAUDE_CODE_MESSAGING_TOKEN",
      "PLATFORM_TOKEN",
      "ANTHROPIC_AUTH_TOKEN",
      "CLIENT_SECRET",
      "SECRET",
      "SECRET_KEY_BASE",
      "AZURE_DEVOPS_PAT",
      "npm_config__auth",
      "npm_config_//packages.example/:_authToken",
      "REDISCLI_AUTH",
      "DOCKER_AUTH_CONFIG",
      "JUPYTER_COOKIE",
      "SENTRY_DSN",
      "PGPASSWORD",
      "MYSQL_PWD",
      "DB_PASS",
      "SMTP_PASSWD",
      "BORG_PASSPHRASE",
      "SSHPASS",
      "RESTIC_PASSWORD_FILE",
      "GOOGLE_APPLICATION_CREDENTIALS",
      "AWS_SHARED_CREDENTIALS_FILE",
      "AWS_WEB_IDENTITY_TOKEN_FILE",
      "SLACK_WEBHOOK_URL",
      "AZURE_STORAGE_CONNECTION_STRING",
      "ConnectionStrings__Default",
      "CI_JOB_JWT_V2",
      "SSH_PRIVATE_KEY",
      "GCP_SA_KEY_BASE64",
      "OTEL_EXPORTER_OTLP_HEADERS",
      "ANTHROPIC_CUSTOM_HEADERS",
      "SSH_AUTH_SOCK",
      "SSH_AGENT_PID",
      "GPG_AGENT_INFO",
      "DBUS_SESSION_BUS_ADDRESS",
      "DOCKER_HOST",
      "KUBECONFIG",
      "NETRC",
      "PGPASSFILE",
      "KRB5CCNAME",
      "XAUTHORITY",
      "GNUPGHOME",
      "VSCODE_GIT_IPC_HANDLE",
      "GIT_AUTHOR_TOKEN",
      "MY_AUTHORS_SECRET",
  }));
  CAPTURE(name);
  CHECK(filter_for().verdict(name, "x") == Verdict::secret_name);
  CHECK(is_secret_like_name(name));
}

TEST_CASE("the filter lets ordinary variables pass", "[contexts]") {
  const std::string_view entry = GENERATE(values<std::string_view>({
      "PATH=/venv/bin:/usr/bin:/bin",
      "HOME=/root",
      "USER=root",
      "LOGNAME=root",
      "SHELL=/bin/bash",
      "PWD=/workspace",
      "OLDPWD=/",
      "TZ=UTC",
      "LANG=C.UTF-8",
      "LC_ALL=de_DE.UTF-8",
      "LANGUAGE=de",
      "TERM=xterm-256color",
      "COLORTERM=truecolor",
      "NO_COLOR=1",
      "FORCE_COLOR=3",
      "COLUMNS=80",
      "LS_COLORS=rs=0:di=01;34",
      "PAGER=cat",
      "EDITOR=vi",
      "PS1=\\u@\\h:\\w\\$ ",
      "SHLVL=2",
      "VIRTUAL_ENV=/venv",
      "PYTHONPATH=/src",
      "PYTHONHASHSEED=0",
      "NODE_OPTIONS=--no-warnings",
      "NODE_PATH=/usr/lib/node",
      "npm_config_cache=/root/.npm",
      "npm_lifecycle_event=test",
      "npm_config_registry=https://packages.example/",
      "CMAKE_PREFIX_PATH=/opt",
      "CC=clang",
      "CFLAGS=-O2",
      "LDFLAGS=-s",
      "LD=ld.lld",
      "MAKEFLAGS= -j --jobserver-auth=3,4",
      "MAKELEVEL=1",
      "PKG_CONFIG_PATH=/opt/lib/pkgconfig",
      "GOPATH=/go",
      "CARGO_HOME=/cargo",
      "CI=true",
      "CARGO_PKG_AUTHORS=A <a@b.c>",
      "JAVA_HOME=/jdk",
      "MALLOC_ARENA_MAX=2",
      "TMPDIR=/tmp",
      "CLAUDECODE=1",
      "CLAUDE_PID=12",
      "CLAUDE_CODE_MAX_OUTPUT_TOKENS=9",
      "GEMINI_CLI=1",
      "CODEX_SANDBOX=seatbelt",
      "OPENCODE=1",
      "GIT_PAGER=cat",
      "GIT_CONFIG_COUNT=1",
      "GIT_CONFIG_KEY_0=core.fsmonitor",
      "GIT_CONFIG_VALUE_0=false",
      "GIT_AUTHOR_NAME=A",
      "GIT_AUTHOR_EMAIL=a@b.c",
      "GIT_ASKPASS=/bin/echo",
      "TOKENIZERS_PARALLELISM=false",
      "KEYMAP=us",
      "KEYBOARD=pc105",
      "KEYTIMEOUT=1",
      "SSH_TTY=/dev/pts/0",
      "DISPLAY=:0",
      "SSH_CONNECTION=1.2.3.4 5 6.7.8.9 22",
      "XDG_SESSION_ID=3",
      "DESKTOP_SESSION=gnome",
      "_=/bin/ls",
      "DATABASE_URL=postgres://db/app",
      "REPO=https://user@github.com/a/b.git",
      "EMPTY=",
      "HTTP_PROXY=http://proxy:3128/",
      "NO_PROXY=localhost,::1",
      "A=http://h:80/@scope/pkg",
      "B=http://[::1]:80/x@2x.png",
      "C=ftp://user:@host/",
      "MAIL=a:b@c",
      "BASH_FUNC_f%%=() { :; }",
      "LINES_A=one\ntwo",
      "BYTES=\xff\xfe\x80",
      "=C:=oddity",
      "NO_EQUALS_SIGN",
      "",
  }));
  CAPTURE(entry);
  CHECK(to_string(filter_for().verdict(entry)) == "pass");
}

TEST_CASE("the filter blocks loader variables and airlock's own", "[contexts]") {
  const EnvFilter filter = filter_for();
  for (const auto* name : {"LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "LD_", "GLIBC_TUNABLES"}) {
    CHECK(filter.verdict(name, "x") == Verdict::loader);
  }
  for (const auto* name : {"AIRLOCK_SOCKET", "AIRLOCK_TOKEN", "SANDBOX_ROUTE_TO_CONTEXT"}) {
    CHECK(filter.verdict(name, "x") == Verdict::airlock_variable);
  }
}

TEST_CASE("the filter blocks URLs with a password", "[contexts]") {
  const std::string_view value = GENERATE(values<std::string_view>({
      "postgres://user:pass@host/db",
      "redis://:pass@host:6379",
      "https://x:ghp_1@github.com/a",
      "-Durl=jdbc:mysql://u:p@h/db",
      "one http://a.b/ two https://u:p@h three",
      "http://u:p@ss@h/",
      "amqp://u:p/w@host/vhost",
      "mongodb+srv://u:p%40@c.net",
      "a\nhttp://u:p@h\nb",
      "http://u:p@[::1]:80/",
      "postgres://u:pa'ss@host/db",
      "http://h/?next=http://u:p@h/",
  }));
  CAPTURE(value);
  CHECK(filter_for().verdict("SOME_URL", value) == Verdict::url_password);
  CHECK(has_url_password(value));
}

TEST_CASE("the filter blocks values that contain a platform secret", "[contexts]") {
  EnvPolicy policy;
  policy.secrets = {"configured=secret", "short"};
  const Environment start{"OPENAI_API_KEY=" + std::string(kSecret),
                          "TINY_TOKEN=1234567",
                          "LINE_TOKEN=line-secret-1\n",
                          "FOO=not-a-secret-at-all",
                          "PLAIN_TOKEN",
                          "DUP_KEY=first-dup-1",
                          "DUP_KEY=second-dup-2"};
  const EnvFilter filter(policy, start);
  const std::string secret(kSecret);
  CHECK(filter.verdict("A", secret) == Verdict::secret_value);
  CHECK(filter.verdict("A", "x" + secret + "y") == Verdict::secret_value);
  CHECK(filter.verdict("A", "Bearer " + secret) == Verdict::secret_value);
  CHECK(filter.verdict("PATH", "/x/" + secret) == Verdict::secret_value);
  CHECK(filter.verdict("A", "line-secret-1") == Verdict::secret_value);
  CHECK(filter.verdict("A", "second-dup-2") == Verdict::secret_value);
  CHECK(filter.verdict("A", "configured=secret") == Verdict::secret_value);
  CHECK(filter.verdict("configured=secret") == Verdict::secret_value);  // across the '='
  CHECK(filter.verdict(secret + "=1") == Verdict::secret_value);        // in the name
  CHECK(filter.verdict(secret) == Verdict::secret_value);               // without '='
  CHECK(filter.verdict("A", secret.substr(1)) == Verdict::pass);
  CHECK(filter.verdict("A", "1234567") == Verdict::pass);  // below 8 bytes
  CHECK(filter.verdict("A", "a short one") == Verdict::pass);
  CHECK(filter.verdict("A", "not-a-secret-at-all") == Verdict::pass);
}

TEST_CASE("a secret is found at every place of a value", "[contexts]") {
  EnvPolicy policy;
  policy.secrets = {"abababac", "zzzzzzzzzzzz", "\xff\xfe\xfd\xfc\xfb\xfa\xf9\xf8"};
  const EnvFilter filter = filter_for(policy);
  for (const std::string& secret : policy.secrets) {
    for (std::size_t before = 0; before < 40; ++before) {
      const std::string value = std::string(before, 'a') + secret + std::string(before % 7, 'b');
      CHECK(filter.verdict("A", value) == Verdict::secret_value);
      CHECK(filter.verdict("A", value.substr(0, before + secret.size() - 1)) == Verdict::pass);
    }
  }
}

TEST_CASE("a weak secret does not take PATH away", "[contexts]") {
  const EnvFilter filter =
      filter_for({}, {"DB_PASSWORD=postgres", "DOCKER_CONFIG=/home/me", "PIN_TOKEN=12345678"});
  CHECK(filter.verdict("PATH=/usr/lib/postgresql/bin:/home/me/bin") == Verdict::pass);
  CHECK(filter.verdict("HOME=/home/me") == Verdict::pass);
  CHECK(filter.verdict("FOO=postgres") == Verdict::secret_value);
  CHECK(filter.verdict("FOO=12345678") == Verdict::secret_value);
}

TEST_CASE("the configuration decides first, the most specific pattern of it", "[contexts]") {
  EnvPolicy policy;
  policy.pass_env = {"GITHUB_TOKEN", "MY_*", "LD_LIBRARY_PATH", "BOTH", "A_*_KEY", "LD_*"};
  policy.block_env = {"MY_PRIVATE*", "TZ", "BOTH", "*_KEY", "GITHUB_*"};
  const EnvFilter filter(policy, Environment{"OTHER_TOKEN=" + std::string(kSecret)});
  CHECK(filter.verdict("GITHUB_TOKEN", kSecret) == Verdict::pass);  // exact over glob, over secrets
  CHECK(filter.verdict("GITHUB_ENV", "x") == Verdict::blocked_by_config);
  CHECK(filter.verdict("MY_TOKEN", "http://u:p@h") == Verdict::pass);
  CHECK(filter.verdict("MY_PRIVATE_THING", "x") == Verdict::blocked_by_config);  // longer glob
  CHECK(filter.verdict("TZ", "UTC") == Verdict::blocked_by_config);
  CHECK(filter.verdict("BOTH", "x") == Verdict::blocked_by_config);  // tie
  CHECK(filter.verdict("A_B_KEY", "x") == Verdict::pass);
  CHECK(filter.verdict("LD_LIBRARY_PATH", "/opt") == Verdict::pass);
  CHECK(filter.verdict("my_token", "x") == Verdict::secret_name);  // case counts here
  CHECK(filter.verdict("LD_PRELOAD", "/a.so") == Verdict::pass);
  CHECK(filter.verdict("LD_PRELOAD", "/a.so:/x/libairlock-preload.so") == Verdict::loader);
}

TEST_CASE("a value that pass_env lets through is no secret", "[contexts]") {
  EnvPolicy policy;
  policy.pass_env = {"NPM_TOKEN"};
  const EnvFilter filter(policy, Environment{"NPM_TOKEN=" + std::string(kSecret)});
  CHECK(filter.verdict("COPY", kSecret) == Verdict::pass);
}

TEST_CASE("hostile values are judged in linear time", "[contexts]") {
  std::string urls;
  while (urls.size() < 128 * 1024) urls += "a://b:c ";
  CHECK(filter_for().verdict("A", urls + "@") == Verdict::pass);
  std::string chain;
  while (chain.size() < 128 * 1024) chain += "a://";
  CHECK(filter_for().verdict("A", chain + "@") == Verdict::pass);
}

TEST_CASE("every verdict has a name", "[contexts]") {
  CHECK(to_string(Verdict::pass) == "pass");
  CHECK(to_string(Verdict::loader) == "loader");
  CHECK(to_string(Verdict::airlock_variable) == "airlock_variable");
  CHECK(to_string(Verdict::secret_name) == "secret_name");
  CHECK(to_string(Verdict::secret_value) == "secret_value");
  CHECK(to_string(Verdict::url_password) == "url_password");
  CHECK(to_string(Verdict::blocked_by_config) == "blocked_by_config");
}
