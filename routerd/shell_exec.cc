#include "contexts/spec.h"
#include "routerd/exec_call.h"

namespace routerd {

/// The request's environment and folder are for this command only; the shell has its own.
void ExecRouter::run_in_shell(HostedContext& target, Call& call) {
  const Shells::Key key{call.request.policy.shell.name, call.request.credentials};
  if (!contexts::is_name(key.name)) {
    return refuse(call, kRefused, "shell",
                  "shell name '" + key.name.substr(0, 64) + "': expected " + contexts::kNameRule,
                  EINVAL);
  }
  call.record.program = "(shell " + key.name + ")";  // never what is typed
  // A shell leads no terminal, and holds no more than a command's standard descriptors.
  call.request.tty = wire::TtyMode::none;
  call.request.terminal_fds.clear();
  call.request.policy.stdio_only = true;
  settle_fds(target, call);
  auto shell = shell_of(target, key);
  if (!shell) return refuse(call, kRefused, "shell", shell.error().message(), shell.error().code);
  call.record.rule = "shell";
  hand_over(target, **shell, call);
}

base::Result<Handover*> ExecRouter::shell_of(HostedContext& target, const Shells::Key& key) {
  if (Handover* there = target.shells->find(key)) return there;
  return target.shells->start(key, *target.handover,
                              {next_job_++, shell_env(target, key.credentials), target.spec().cwd,
                               target.context->airlock_folder()});
}

contexts::Environment ExecRouter::shell_env(const HostedContext& target,
                                            const wire::Credentials& credentials) const {
  Call bare;
  bare.request.credentials = credentials;
  return with_own_home(target, to_list(context_env(target, bare))).strings();
}

void ExecRouter::update_shells(HostedContext& target) const {
  target.shells->update(
      [&](const wire::Credentials& credentials) { return shell_env(target, credentials); },
      target.spec().cwd);
}

}  // namespace routerd
