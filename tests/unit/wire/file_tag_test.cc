#include "wire/file_tag.h"

#include <catch2/catch.hpp>

using wire::FileEntry;
using wire::FileRequest;

TEST_CASE("a tag tells size, time and inode apart", "[wire][files]") {
  FileEntry entry{.size = 0x10, .mtime_ns = 0xab, .inode = 0};
  CHECK(wire::file_tag(entry) == "\"10-ab-0\"");
  entry.size = ~std::uint64_t{0};
  entry.mtime_ns = -1;
  CHECK(wire::file_tag(entry) == "\"ffffffffffffffff-ffffffffffffffff-0\"");
  FileEntry other = entry;
  other.mode = 0600;
  CHECK(wire::file_tag(other) == wire::file_tag(entry));
  other.inode = 1;
  CHECK(wire::file_tag(other) != wire::file_tag(entry));
}

TEST_CASE("conditions are about what is there", "[wire][files]") {
  FileRequest request;
  CHECK(wire::are_met(request, ""));
  CHECK(wire::are_met(request, "\"1\""));
  request.if_match = {"\"1\"", "\"2\""};
  CHECK(wire::are_met(request, "\"2\""));
  CHECK_FALSE(wire::are_met(request, "\"3\""));
  CHECK_FALSE(wire::are_met(request, ""));
  request.if_match = {"*"};
  CHECK(wire::are_met(request, "\"3\""));
  CHECK_FALSE(wire::are_met(request, ""));
  request = {};
  request.if_none_match = {"*"};
  CHECK(wire::are_met(request, ""));
  CHECK_FALSE(wire::are_met(request, "\"3\""));
  request.if_none_match = {"\"1\""};
  CHECK(wire::are_met(request, "\"3\""));
  CHECK_FALSE(wire::are_met(request, "\"1\""));
}
