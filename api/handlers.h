#pragma once

#include <memory>

#include "api/http.h"

// One function per operation; routes.cc lists them.
namespace api {

struct App;

// handle_system.cc
void get_health(App& app, const std::shared_ptr<Exchange>& exchange);
void get_ready(App& app, const std::shared_ptr<Exchange>& exchange);
void get_metrics(App& app, const std::shared_ptr<Exchange>& exchange);
void get_info(App& app, const std::shared_ptr<Exchange>& exchange);
void get_openapi(App& app, const std::shared_ptr<Exchange>& exchange);
void list_ports(App& app, const std::shared_ptr<Exchange>& exchange);

// handle_contexts.cc
void list_contexts(App& app, const std::shared_ptr<Exchange>& exchange);
void create_context(App& app, const std::shared_ptr<Exchange>& exchange);
void get_context(App& app, const std::shared_ptr<Exchange>& exchange);
void set_context(App& app, const std::shared_ptr<Exchange>& exchange);
void destroy_context(App& app, const std::shared_ptr<Exchange>& exchange);
void explain_route(App& app, const std::shared_ptr<Exchange>& exchange);
void get_audit_events(App& app, const std::shared_ptr<Exchange>& exchange);
void get_route_events(App& app, const std::shared_ptr<Exchange>& exchange);

// handle_settings.cc: where and with what a context's programs start
void get_env(App& app, const std::shared_ptr<Exchange>& exchange);
void put_env(App& app, const std::shared_ptr<Exchange>& exchange);
void patch_env(App& app, const std::shared_ptr<Exchange>& exchange);
void get_cwd(App& app, const std::shared_ptr<Exchange>& exchange);
void put_cwd(App& app, const std::shared_ptr<Exchange>& exchange);
void get_route(App& app, const std::shared_ptr<Exchange>& exchange);
void put_route(App& app, const std::shared_ptr<Exchange>& exchange);

// handle_shells.cc
void list_shells(App& app, const std::shared_ptr<Exchange>& exchange);
void get_shell(App& app, const std::shared_ptr<Exchange>& exchange);
void create_shell(App& app, const std::shared_ptr<Exchange>& exchange);
void interrupt_shell(App& app, const std::shared_ptr<Exchange>& exchange);
void reset_shell(App& app, const std::shared_ptr<Exchange>& exchange);

// handle_context_ports.cc: what programs of a context listen on
void list_context_ports(App& app, const std::shared_ptr<Exchange>& exchange);
void wait_for_port(App& app, const std::shared_ptr<Exchange>& exchange);

// handle_exec.cc: running programs
void post_exec(App& app, const std::shared_ptr<Exchange>& exchange);

// handle_execs.cc: programs that run or have run
void list_execs(App& app, const std::shared_ptr<Exchange>& exchange);
void get_exec(App& app, const std::shared_ptr<Exchange>& exchange);
void delete_exec(App& app, const std::shared_ptr<Exchange>& exchange);
void get_output(App& app, const std::shared_ptr<Exchange>& exchange);
void post_stdin(App& app, const std::shared_ptr<Exchange>& exchange);
void post_resize(App& app, const std::shared_ptr<Exchange>& exchange);

// handle_signal.cc
void post_signal(App& app, const std::shared_ptr<Exchange>& exchange);
// handle_files.cc: files, by a program in the context
void get_file(App& app, const std::shared_ptr<Exchange>& exchange);
void put_file(App& app, const std::shared_ptr<Exchange>& exchange);
void remove_file(App& app, const std::shared_ptr<Exchange>& exchange);
void stat_file(App& app, const std::shared_ptr<Exchange>& exchange);
void list_files(App& app, const std::shared_ptr<Exchange>& exchange);
void make_folder(App& app, const std::shared_ptr<Exchange>& exchange);
void move_file(App& app, const std::shared_ptr<Exchange>& exchange);

// handle_terminals.cc
void list_terminals(App& app, const std::shared_ptr<Exchange>& exchange);
void create_terminal(App& app, const std::shared_ptr<Exchange>& exchange);
void get_terminal(App& app, const std::shared_ptr<Exchange>& exchange);
void end_terminal(App& app, const std::shared_ptr<Exchange>& exchange);
void reset_terminal(App& app, const std::shared_ptr<Exchange>& exchange);

// handle_attach.cc: WebSockets
void attach_exec(App& app, const std::shared_ptr<Exchange>& exchange);
void attach_terminal(App& app, const std::shared_ptr<Exchange>& exchange);
/// `kubectl exec`, with a context as the pod.
void kubernetes_exec(App& app, const std::shared_ptr<Exchange>& exchange);

}  // namespace api
