#include "api/terminals.h"

#include <signal.h>

#include <nlohmann/json.hpp>

namespace api {

using nlohmann::json;

namespace {

/// What the terminal of an exec was ordered by. It was checked when it came.
std::optional<TerminalOrder> order_of(const Exec& exec, const std::string& new_shell) {
  const json body = json::parse(exec.facts().terminal_order, nullptr, false);
  if (!body.is_object()) return std::nullopt;
  auto order = read_terminal_order(body, new_shell);
  if (!order) return std::nullopt;
  order->exec.terminal_id = exec.facts().terminal;
  return std::move(*order);
}

}  // namespace

base::Result<std::shared_ptr<Audience>> Terminals::create(TerminalOrder order,
                                                          const std::string& context) {
  prune();
  order.exec.terminal_id = make_id("term_");
  auto exec = execs_.start(order.exec, context);
  if (!exec) return tl::unexpected<base::Error>(exec.error());
  auto terminal =
      std::make_shared<Audience>(io_, order.exec.terminal_id, std::move(*exec), order.idle_ms);
  terminal->arm_idle();
  terminals_.emplace(terminal->id(), terminal);
  return terminal;
}

std::shared_ptr<Audience> Terminals::find(const std::string& id) {
  prune();
  const auto found = terminals_.find(id);
  return found == terminals_.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<Audience>> Terminals::in_context(const std::string& context) {
  prune();
  std::vector<std::shared_ptr<Audience>> list;
  for (const auto& [id, terminal] : terminals_) {
    if (terminal->exec()->facts().context == context) list.push_back(terminal);
  }
  return list;
}

std::shared_ptr<Audience> Terminals::of_exec(const std::shared_ptr<Exec>& exec) {
  auto terminal = find(exec->facts().terminal);
  if (terminal && terminal->exec() == exec) return terminal;
  auto& known = others_[exec->facts().id];
  auto audience = known.lock();
  if (!audience) {
    audience = std::make_shared<Audience>(io_, exec->facts().id, exec, 0);
    known = audience;
  }
  return audience;
}

base::Result<void> Terminals::reset(Audience& terminal, AskedBy asked_by) {
  const auto old = terminal.exec();
  auto order = order_of(*old, execs_.new_shell());
  if (!order) return base::failure("reset a terminal", EBADMSG);
  order->exec.asked_by = std::move(asked_by);
  if (const auto size = old->size()) order->exec.terminal = *size;
  auto exec = execs_.start(order->exec, old->facts().context);
  if (!exec) return tl::unexpected<base::Error>(exec.error());
  terminal.replace(std::move(*exec));
  old->signal(SIGKILL, wire::KillScope::group);
  return {};
}

void Terminals::adopt() {
  std::map<std::string, std::shared_ptr<Exec>> latest;
  for (const auto& exec : execs_.all()) {
    if (exec->facts().terminal.empty()) continue;
    auto& known = latest[exec->facts().terminal];
    if (!known || known->facts().started_ms <= exec->facts().started_ms) known = exec;
  }
  for (const auto& [id, exec] : latest) {
    const auto order = order_of(*exec, execs_.new_shell());
    if (!order) continue;
    const auto terminal = std::make_shared<Audience>(io_, id, exec, order->idle_ms);
    terminal->arm_idle();
    terminals_.emplace(id, terminal);
  }
}

void Terminals::prune() {
  std::erase_if(terminals_, [this](const auto& each) {
    return each.second->is_empty() && !execs_.find(each.second->exec()->facts().id);
  });
  std::erase_if(others_, [](const auto& each) { return each.second.expired(); });
}

json to_json(const Audience& terminal) {
  const auto& facts = terminal.exec()->facts();
  json told = terminal.state();
  told["id"] = terminal.id();
  told["context"] = facts.context;
  told["exec"] = to_json(facts, now_ms());
  const auto size = terminal.exec()->size();
  told["cols"] = size ? json(size->columns) : json();
  told["rows"] = size ? json(size->rows) : json();
  return told;
}

}  // namespace api
