#pragma once

#include <cstddef>

namespace wire {

/// Longest folder a stub can be told, with its NUL: RuntimeDir's limit and some.
constexpr std::size_t kMaxStubFolder = 64;

/// Where a stub that is called by another program's name finds its router socket. A copy of the
/// stub in a shim farm has its folder written into the file, behind `mark`; without one, `folder`
/// is empty and the stub serves only callers that name it in full.
struct StubFolder {
  char mark[24];
  char folder[kMaxStubFolder];
};

constexpr char kStubFolderMark[] = "airlock-stub's folder:\n";
static_assert(sizeof kStubFolderMark == sizeof StubFolder::mark);

}  // namespace wire
