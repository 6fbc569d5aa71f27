#include "routerd/exec_call.h"
#include "wire/process_state.h"

namespace routerd {
namespace {

constexpr std::uint32_t kSocketInTool = 0;

wire::ExecRequest request_of(const wire::FileJob& order, const std::string& programs) {
  wire::ExecRequest request;
  request.path = programs + "/airlock-files";
  request.argv = {"airlock-files"};
  request.cwd = order.cwd;
  request.fd_numbers = {kSocketInTool};
  request.state = wire::capture_process_state();
  request.state.blocked_signals = 0;
  request.state.ignored_signals = 0;
  request.state.pending_signals = 0;
  request.state.umask = order.umask & 0777;
  request.state.session_leader = true;
  request.on_disconnect = order.on_disconnect;
  request.policy.context = order.context;
  return request;
}

}  // namespace

void ExecRouter::run_files(const Peer& peer, wire::Frame frame, base::UniqueFd connection,
                           Clock::time_point accepted, ApiRequest asked_by) {
  auto order = wire::decode<wire::FileJob>(frame.payload);
  Call call;
  call.connection = std::move(connection);
  call.peer = peer;
  call.accepted = accepted;
  call.record.time_ms = real_time_ms();
  call.record.pid = peer.pid;
  call.record.uid = peer.credentials.uid;
  call.record.program = "(files)";  // never their names
  call.record.asked_by = std::move(asked_by);
  if (!order || frame.fds.size() != 1) {
    return refuse(call, kRefused, "files", "expected an order and one descriptor", EBADMSG);
  }
  HostedContext* target = find_(order->context);
  if (target == nullptr) {
    return refuse(call, kRefused, "files", "there is no context '" + order->context + "'", ENOENT);
  }
  call.request = request_of(*order, target->context->airlock_folder());
  call.fds = std::move(frame.fds);
  auto user = credentials_in(*target, call.peer);
  if (!user) return refuse(call, kRefused, "user", user.error().message());
  call.request.credentials = std::move(*user);
  target->is_claimable = false;
  if (call.request.cwd.empty()) call.request.cwd = target->spec().cwd;
  if (call.request.cwd.front() != '/') {
    return refuse(call, kRefused, "files", "the working folder is no absolute path", EINVAL);
  }
  if (auto added = target->add_file_tool(); !added) {
    return refuse(call, kRefused, "files", added.error().message(), added.error().code);
  }
  call.record.rule = "files";
  hand_over(*target, *target->handover, call);
}

}  // namespace routerd
