#include "wire/codec.h"

#include <catch2/catch.hpp>
#include <cstring>

#include "tests/support/messages.h"
#include "wire/limits.h"

using namespace wire;

namespace {

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    constexpr char kDigits[] = "0123456789abcdef";
    text += kDigits[static_cast<unsigned char>(byte) >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

template <class Message>
bool is_refused(std::string_view payload) {
  const auto message = decode<Message>(payload);
  return !message && message.error().code == EBADMSG;
}

void put_u32(std::string& bytes, std::size_t at, std::uint32_t value) {
  REQUIRE(at + sizeof value <= bytes.size());
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

/// Where `part` starts in `bytes`; it must be there once.
std::size_t offset_of(const std::string& bytes, const std::string& part) {
  const auto at = bytes.find(part);
  REQUIRE(at != std::string::npos);
  REQUIRE(bytes.find(part, at + 1) == std::string::npos);
  return at;
}

}  // namespace

#define EVERY_MESSAGE                                                                             \
  ExecRequest, Started, Stopped, Continued, Exited, NotStarted, RunHere, Signal, Resize, Setup,   \
      Ready, Spawn, SpawnFds, ListJobs, JobList, SignalJob, Control, ControlReply, Event, Attach, \
      Attached, Release, JobRefused, ShellUpdate, ShellOrder, ShellState, Queued, KeptExec,       \
      KeepNote, PortRequest, PortGrant, ApiConnection, RunAgain, Walls, FileJob, FileRequest,     \
      FileReady, FileEntry, FileHead, FileRange, FileData, FileEnd, FileFailed

TEMPLATE_TEST_CASE("every message survives a round trip", "[wire]", EVERY_MESSAGE) {
  const auto full = support::full<TestType>();
  const auto decoded = decode<TestType>(encode(full));
  REQUIRE(decoded);
  CHECK(*decoded == full);

  const auto empty = decode<TestType>(encode(TestType{}));
  REQUIRE(empty);
  CHECK(*empty == TestType{});
}

TEMPLATE_TEST_CASE("every message is refused when it is cut anywhere", "[wire]", EVERY_MESSAGE) {
  const std::string bytes = encode(support::full<TestType>());
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    CAPTURE(length);
    // A copy of its own size, so that AddressSanitizer sees a read beyond it.
    const std::vector<char> cut(bytes.begin(), bytes.begin() + static_cast<long>(length));
    CHECK(is_refused<TestType>({cut.data(), cut.size()}));
  }
}

TEMPLATE_TEST_CASE("every message is refused with a byte too many", "[wire]", EVERY_MESSAGE) {
  CHECK(is_refused<TestType>(encode(support::full<TestType>()) + '\0'));
}

TEST_CASE("every message type has a number of its own, which never changes", "[wire]") {
  CHECK(static_cast<int>(type_of<ExecRequest>()) == 1);
  CHECK(static_cast<int>(type_of<Started>()) == 2);
  CHECK(static_cast<int>(type_of<Stopped>()) == 3);
  CHECK(static_cast<int>(type_of<Continued>()) == 4);
  CHECK(static_cast<int>(type_of<Exited>()) == 5);
  CHECK(static_cast<int>(type_of<NotStarted>()) == 6);
  CHECK(static_cast<int>(type_of<RunHere>()) == 7);
  CHECK(static_cast<int>(type_of<Signal>()) == 8);
  CHECK(static_cast<int>(type_of<Resize>()) == 9);
  CHECK(static_cast<int>(type_of<Setup>()) == 20);
  CHECK(static_cast<int>(type_of<Ready>()) == 21);
  CHECK(static_cast<int>(type_of<Spawn>()) == 22);
  CHECK(static_cast<int>(type_of<ListJobs>()) == 23);
  CHECK(static_cast<int>(type_of<JobList>()) == 24);
  CHECK(static_cast<int>(type_of<SignalJob>()) == 25);
  CHECK(static_cast<int>(type_of<SpawnFds>()) == 26);
  CHECK(static_cast<int>(type_of<JobRefused>()) == 27);
  CHECK(static_cast<int>(type_of<Walls>()) == 29);
  CHECK(static_cast<int>(type_of<Control>()) == 30);
  CHECK(static_cast<int>(type_of<ControlReply>()) == 31);
  CHECK(static_cast<int>(type_of<Event>()) == 32);
  CHECK(static_cast<int>(type_of<ShellOrder>()) == 60);
  CHECK(static_cast<int>(type_of<ShellState>()) == 61);
  CHECK(static_cast<int>(type_of<Queued>()) == 62);
  CHECK(static_cast<int>(type_of<Attach>()) == 40);
  CHECK(static_cast<int>(type_of<Attached>()) == 41);
  CHECK(static_cast<int>(type_of<Release>()) == 42);
  CHECK(static_cast<int>(type_of<KeptExec>()) == 70);
  CHECK(static_cast<int>(type_of<KeepNote>()) == 71);
  CHECK(static_cast<int>(type_of<PortRequest>()) == 50);
  CHECK(static_cast<int>(type_of<PortGrant>()) == 51);
  CHECK(static_cast<int>(type_of<ApiConnection>()) == 91);
  CHECK(static_cast<int>(type_of<RunAgain>()) == 100);
  CHECK(static_cast<int>(type_of<FileJob>()) == 80);
  CHECK(static_cast<int>(type_of<FileRequest>()) == 81);
  CHECK(static_cast<int>(type_of<FileReady>()) == 82);
  CHECK(static_cast<int>(type_of<FileEntry>()) == 83);
  CHECK(static_cast<int>(type_of<FileHead>()) == 84);
  CHECK(static_cast<int>(type_of<FileRange>()) == 85);
  CHECK(static_cast<int>(type_of<FileData>()) == 86);
  CHECK(static_cast<int>(type_of<FileEnd>()) == 87);
  CHECK(static_cast<int>(type_of<FileFailed>()) == 88);
}

// What is on the wire in version 1. A change here is a change of kVersion.
TEST_CASE("the bytes of version 1 are these", "[wire]") {
  CHECK(kVersion == 1);
  CHECK(hex(encode_header({.length = 0x01020304,
                           .type = MessageType::exec_request,
                           .version = kVersion,
                           .fd_count = 5})) ==
        "04030201"
        "0100"
        "0100"
        "05000000");
  CHECK(hex(encode(Exited{0x0109, 2, 3, 4, true, {}})) ==
        "09010000"
        "0200000000000000"
        "0300000000000000"
        "0400000000000000"
        "01"
        "00"
        "00"
        "00000000"
        "00000000"
        "00000000"
        "00000000"
        "00000000");  // shell: engine, event, no_checkpoint, cwd, changed_env, background
  CHECK(hex(encode(NotStarted{127, 2, "no"})) ==
        "7f000000"
        "02000000"
        "02000000"
        "6e6f"
        "00");
  CHECK(hex(encode(RunHere{"/a", {"B=", "C"}})) ==
        "02000000"
        "2f61"
        "02000000"
        "05000000"
        "423d00"
        "4300"
        "00");
  CHECK(hex(encode(SignalJob{1, {15, KillScope::tree}})) ==
        "0100000000000000"
        "0f000000"
        "01");
}

TEST_CASE("the bytes of an empty exec request are these", "[wire]") {
  CHECK(hex(encode(ExecRequest{})) ==
        "00000000"  // path
        "00000000"
        "00000000"  // argv: count, bytes
        "00000000"
        "00000000"  // env
        "00000000"  // cwd
        "00000000"  // fd_numbers
        "00"        // search_path
        "12000000"  // umask
        "0000000000000000"
        "0000000000000000"
        "0000000000000000"  // blocked, ignored, pending
        "00000000"
        "00000000"
        "00000080"
        "00000000"  // nice, io priority, oom_score_adj, personality
        "00000000"
        "00000000"  // affinity, rlimits
        "00"
        "00"
        "00"  // session leader, group leader, no_new_privs
        "00"
        "00000000"
        "0000000000000000"
        "00000000"
        "00000000"  // subreaper, death signal, timer slack, scheduler, timers
        "00000000"
        "00000000"
        "00000000"  // uid, gid, groups
        "00"
        "00000000"  // tty, tty_fd
        "0000"
        "0000"
        "0000"
        "0000"  // winsize
        "00"
        "00"  // on_disconnect, on_stub_kill
        "00000000"
        "00"
        "00"
        "00"  // context, env mode, stdio_only, launch
        "0000000000000000"
        "d007000000000000"  // time limit, kill grace
        "00000000"
        "00"
        "00"  // shell: name, fail_if_busy, no_checkpoint
        "00000000"
        "00000000"
        "00"        // terminal_fds, termios, foreground
        "00"        // caught_by
        "00000000"  // script
        "00");      // is_service
}

TEST_CASE("a request with 2 MiB of arguments survives a round trip", "[wire]") {
  ExecRequest request;
  request.path = "/bin/true";
  for (int i = 0; i < 16; ++i) request.argv.add(std::string(kMaxArgString - 1, 'x'));
  const std::string bytes = encode(request);
  CHECK(bytes.size() > 2u << 20);
  const auto decoded = decode<ExecRequest>(bytes);
  REQUIRE(decoded);
  CHECK(*decoded == request);
}

TEST_CASE("an enum beyond its last value is refused", "[wire]") {
  std::string bytes = encode(Signal{9, KillScope::process});
  REQUIRE(decode<Signal>(bytes));
  ++bytes.back();
  CHECK(is_refused<Signal>(bytes));

  ExecRequest request;
  request.policy.context = "MARK";
  const std::string good = encode(request);
  const std::size_t context = offset_of(good, "MARK");
  // Before the context's length: on_stub_kill, on_disconnect, winsize, tty_fd, tty. After it: env.
  const std::size_t stub_kill = context - 5, disconnect = context - 6, tty = context - 19;
  const std::size_t env = context + 4;
  for (const auto& [at, last] : std::vector<std::pair<std::size_t, char>>{
           {stub_kill, 2}, {disconnect, 1}, {tty, 2}, {env, 2}}) {
    CAPTURE(at);
    std::string changed = good;
    changed[at] = last;
    CHECK(decode<ExecRequest>(changed));
    changed[at] = static_cast<char>(last + 1);
    CHECK(is_refused<ExecRequest>(changed));
    changed[at] = '\xff';
    CHECK(is_refused<ExecRequest>(changed));
  }
}

TEST_CASE("a bool that is neither 0 nor 1 is refused", "[wire]") {
  ExecRequest request;
  std::string bytes = encode(request);
  bytes.back() = 1;
  CHECK(decode<ExecRequest>(bytes)->is_service);
  bytes.back() = 2;
  CHECK(is_refused<ExecRequest>(bytes));
}

TEST_CASE("a count that lies about a list of strings is refused", "[wire]") {
  const std::string good = encode(RunHere{"/a", {"MARK", "B"}});
  const std::size_t count = offset_of(good, "MARK") - 8;
  for (const std::uint32_t lie : {0u, 1u, 3u, UINT32_MAX}) {
    std::string changed = good;
    put_u32(changed, count, lie);
    CHECK(is_refused<RunHere>(changed));
  }
  std::string changed = good;
  put_u32(changed, count, 2);
  CHECK(changed == good);
}

TEST_CASE("a count or length beyond the bytes is refused before memory is taken for it", "[wire]") {
  std::string list = encode(JobList{1, {}});
  for (const std::uint32_t lie : {1u, 0x7fffffffu, UINT32_MAX}) {
    put_u32(list, 8, lie);
    CHECK(is_refused<JobList>(list));
  }
  std::string control = encode(Control{"{}"});
  for (const std::uint32_t lie : {1u, 3u, UINT32_MAX}) {
    put_u32(control, 0, lie);
    CHECK(is_refused<Control>(control));
  }
}

TEST_CASE("a NUL in a path is refused, and one in other text is not", "[wire]") {
  const std::string nul("/a\0b", 4);
  CHECK(is_refused<RunHere>(encode(RunHere{nul, {}})));
  ExecRequest request;
  request.path = nul;
  CHECK(is_refused<ExecRequest>(encode(request)));
  request.path = "/bin/true";
  request.cwd = nul;
  CHECK(is_refused<ExecRequest>(encode(request)));
  for (std::string Setup::*path : {&Setup::view_dir, &Setup::runtime_dir, &Setup::root_dir,
                                   &Setup::private_home, &Setup::home}) {
    Setup setup = support::full_setup();
    setup.*path = nul;
    CHECK(is_refused<Setup>(encode(setup)));
  }
  CHECK(decode<NotStarted>(encode(NotStarted{126, 0, nul})));
}

TEST_CASE("a path must be shorter than PATH_MAX", "[wire]") {
  CHECK(decode<RunHere>(encode(RunHere{std::string(kMaxPath - 1, 'x'), {}})));
  CHECK(is_refused<RunHere>(encode(RunHere{std::string(kMaxPath, 'x'), {}})));
}

TEST_CASE("a header survives a round trip up to its limits", "[wire]") {
  const Header header{.length = kMaxPayload,
                      .type = static_cast<MessageType>(0xffff),
                      .version = kVersion,
                      .fd_count = kMaxPassedFds};
  const std::string bytes = encode_header(header);
  REQUIRE(bytes.size() == kHeaderSize);
  const auto decoded = decode_header(bytes + "payload");
  REQUIRE(decoded);
  CHECK(decoded->length == header.length);
  CHECK(decoded->type == header.type);
  CHECK(decoded->version == header.version);
  CHECK(decoded->fd_count == header.fd_count);
}

TEST_CASE("a header that is cut, too large or of another version is refused", "[wire]") {
  const Header good{.length = 1, .type = MessageType::control, .version = kVersion, .fd_count = 0};
  const std::string bytes = encode_header(good);
  for (std::size_t length = 0; length < kHeaderSize; ++length) {
    CHECK(decode_header(bytes.substr(0, length)).error().code == EBADMSG);
  }
  Header bad = good;
  bad.length = kMaxPayload + 1;
  CHECK(decode_header(encode_header(bad)).error().code == EMSGSIZE);
  bad = good;
  bad.fd_count = kMaxPassedFds + 1;
  CHECK(decode_header(encode_header(bad)).error().code == EMSGSIZE);
  for (const int version : {0, 2, 0xffff}) {
    bad = good;
    bad.version = static_cast<std::uint16_t>(version);
    const auto decoded = decode_header(encode_header(bad));
    REQUIRE_FALSE(decoded);
    CHECK(decoded.error().code == EPROTONOSUPPORT);
    CHECK(decoded.error().operation == "protocol version " + std::to_string(version));
  }
}
