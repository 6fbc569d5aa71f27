#include "routerd/audit/chain.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/hex.h"
#include "base/sha256.h"

namespace routerd::audit {

using json = nlohmann::json;
using std::string_view;

namespace {

constexpr string_view kBeforeHash = R"(,"hash":")";
constexpr string_view kAfterHash = R"("})";
constexpr std::size_t kHashSize = 64;

bool is_hash(string_view text) {
  return text.size() == kHashSize &&
         text.find_first_not_of("0123456789abcdef") == string_view::npos;
}

std::string hash_of(string_view previous, string_view body) {
  return base::hex(base::sha256(std::string(previous) + "\n" + std::string(body)));
}

/// A line without its hash, and the hash.
struct Parts {
  std::string body;
  std::string hash;
};

std::optional<Parts> parts_of(string_view line) {
  constexpr std::size_t kTail = kBeforeHash.size() + kHashSize + kAfterHash.size();
  if (line.size() <= kTail || !line.ends_with(kAfterHash)) return std::nullopt;
  const auto tail = line.substr(line.size() - kTail);
  const auto hash = tail.substr(kBeforeHash.size(), kHashSize);
  if (!tail.starts_with(kBeforeHash) || !is_hash(hash)) return std::nullopt;
  return Parts{std::string(line.substr(0, line.size() - kTail)) + "}", std::string(hash)};
}

}  // namespace

std::string to_text(const Head& head) { return std::to_string(head.number) + ":" + head.hash; }

std::optional<Head> parse_head(string_view text) {
  Head head;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), head.number);
  text.remove_prefix(static_cast<std::size_t>(parsed.ptr - text.data()));
  if (parsed.ec != std::errc() || !text.starts_with(':') || !is_hash(text.substr(1))) {
    return std::nullopt;
  }
  head.hash = text.substr(1);
  return head;
}

std::string append_to_chain(Head& head, json record) {
  record["seq"] = head.number + 1;
  std::string line = record.dump(-1, ' ', false, json::error_handler_t::replace);
  const std::string hash = hash_of(head.hash, line);
  line.pop_back();
  line.append(kBeforeHash).append(hash).append(kAfterHash).push_back('\n');
  head = {head.number + 1, hash};
  return line;
}

std::optional<Head> head_of(string_view line) {
  const auto parts = parts_of(line);
  if (!parts) return std::nullopt;
  const json body = json::parse(parts->body, nullptr, false);
  if (!body.is_object() || !body.contains("seq") || !body["seq"].is_number_unsigned()) {
    return std::nullopt;
  }
  return Head{body["seq"].get<std::uint64_t>(), parts->hash};
}

void ChainCheck::fail(std::string what) { problems_.push_back({file_, line_, std::move(what)}); }

void ChainCheck::add_file(const std::string& name, string_view text) {
  file_ = name;
  line_ = 0;
  while (!text.empty()) {
    const auto end = text.find('\n');
    ++line_;
    if (end == string_view::npos) {
      fail("the line is cut off");
      break;
    }
    add_line(text.substr(0, end), line_ == 1);
    text.remove_prefix(end + 1);
  }
  if (line_ == 0) fail("the file is empty");
}

void ChainCheck::add_line(string_view line, bool is_first_of_file) {
  ++lines_;
  const auto own = head_of(line);
  if (!own) return fail("no record of an audit log");
  const auto parts = parts_of(line);
  const json body = json::parse(parts->body, nullptr, false);
  const bool says_previous = body.contains("previous") && body["previous"].is_string();
  if (is_first_of_file && !says_previous) fail("a file begins with another record");
  if (lines_ == 1) {
    // What was before is gone; the record tells where the chain stood.
    if (says_previous) head_ = {own->number - 1, body["previous"].get<std::string>()};
    first_ = *own;
  }
  if (own->number != head_.number + 1) {
    fail(own->number > head_.number + 1
             ? "records " + std::to_string(head_.number + 1) + " to " +
                   std::to_string(own->number - 1) + " are missing before it"
             : "record " + std::to_string(own->number) + " comes after record " +
                   std::to_string(head_.number));
  } else if (hash_of(head_.hash, parts->body) != own->hash) {
    fail("it is not what was written, or what was before it is not");
  } else if (says_previous && body["previous"] != head_.hash) {
    fail("it continues another log");
  }
  head_ = *own;
  seen_.emplace_back(own->number, own->hash);
}

void ChainCheck::expect(const Head& known) {
  if (known.number == 0 || known.number < first_.number) return;
  const bool is_there =
      std::find(seen_.begin(), seen_.end(), std::pair(known.number, known.hash)) != seen_.end();
  if (!is_there) {
    fail("record " + to_text(known) + " is not there: the end is missing, or all was rewritten");
  }
}

}  // namespace routerd::audit
