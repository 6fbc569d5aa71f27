// Any bytes as a request: the first line is its target, the rest its body. A problem, or an exec
// that can be encoded for the daemon.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "api/exec_order.h"
#include "api/exec_stream.h"
#include "api/routes.h"
#include "api/tokens.h"
#include "wire/codec.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto line = std::min(text.find('\n'), text.size());
  api::Request request;
  if (api::read_target(text.substr(0, line), request)) {
    std::vector<std::string> allowed;
    (void)api::find_route("POST", request.path, request.params, allowed);
    (void)api::parse_cursor(request.query_value("since"));
  }
  request.headers["content-type"] = "application/json";
  request.body = text.substr(std::min(line + 1, text.size()));
  (void)api::Tokens::parse(request.body);
  auto body = api::read_body(request);
  auto order = body ? api::read_exec_order(*body)
                    : api::Checked<api::ExecOrder>(tl::unexpected<api::Problem>(body.error()));
  if (!order) {
    if (order.error().status != 400) std::abort();
    (void)api::to_response(order.error(), "id");
    return 0;
  }
  const auto encoded = wire::encode(api::to_request(*order, "user", "bash"));
  if (!wire::decode<wire::ExecRequest>(encoded) && order->argv.empty()) std::abort();
  return 0;
}
