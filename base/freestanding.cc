// What libstdc++'s templates refer to, for the programs that link no libstdc++.a (stub, init).
// Without exceptions an allocation failure or a broken precondition can only end the process.

#include <cstdlib>
#include <new>

namespace std {
[[noreturn]] void __throw_length_error(const char*) { abort(); }
[[noreturn]] void __throw_logic_error(const char*) { abort(); }
[[noreturn]] void __throw_bad_alloc() { abort(); }
[[noreturn]] void __throw_bad_array_new_length() { abort(); }
[[noreturn]] void __throw_out_of_range(const char*) { abort(); }
[[noreturn]] void __throw_out_of_range_fmt(const char*, ...) { abort(); }
[[noreturn]] void __throw_bad_optional_access() { abort(); }
}  // namespace std

// Memory in classes of powers of two, freed blocks kept for reuse. Single-threaded, as these
// programs are. musl's malloc maps and unmaps pages for every request-sized block, and each page
// fault of that costs a routed exec a microsecond.
namespace {

constexpr std::size_t kSmallest = 32;
constexpr int kClasses = 12;  // 32 bytes to 64 KiB; beyond that malloc
constexpr std::size_t kChunk = 128 << 10;

struct alignas(16) Block {
  std::size_t size_class;
  Block* next;
};

// The first chunk costs no system call; the pages of it that stay untouched cost nothing.
alignas(16) char first_chunk[kChunk];
Block* free_blocks[kClasses];
char* chunk_at = first_chunk;
char* chunk_end = first_chunk + kChunk;

std::size_t class_of(std::size_t size) {
  std::size_t size_class = 0;
  while (size_class < kClasses && (kSmallest << size_class) < size) ++size_class;
  return size_class;
}

Block* carve(std::size_t size) {
  if (static_cast<std::size_t>(chunk_end - chunk_at) < size) {
    chunk_at = static_cast<char*>(std::malloc(kChunk));
    if (chunk_at == nullptr) std::abort();
    chunk_end = chunk_at + kChunk;
  }
  auto* block = reinterpret_cast<Block*>(chunk_at);
  chunk_at += size;
  return block;
}

}  // namespace

void* operator new(std::size_t size) {
  const std::size_t size_class = class_of(size);
  Block* block = nullptr;
  if (size_class == kClasses) {
    block = static_cast<Block*>(std::malloc(sizeof(Block) + size));
    if (block == nullptr) std::abort();
  } else if (free_blocks[size_class] != nullptr) {
    block = free_blocks[size_class];
    free_blocks[size_class] = block->next;
  } else {
    block = carve(sizeof(Block) + (kSmallest << size_class));
  }
  block->size_class = size_class;
  return block + 1;
}

void operator delete(void* memory) noexcept {
  if (memory == nullptr) return;
  Block* block = static_cast<Block*>(memory) - 1;
  if (block->size_class == kClasses) return std::free(block);
  block->next = free_blocks[block->size_class];
  free_blocks[block->size_class] = block;
}
void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }

// Referenced by constructors of static objects; these programs end with _exit(2).
extern "C" {
void* __dso_handle = nullptr;
int __cxa_atexit(void (*)(void*), void*, void*) { return 0; }
[[noreturn]] void __cxa_pure_virtual() { std::abort(); }
}
