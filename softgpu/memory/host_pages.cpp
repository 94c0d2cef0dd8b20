// SPDX-License-Identifier: Apache-2.0
#include "softgpu/memory/host_pages.h"

#include <sys/mman.h>

#include "base/bytes.h"

namespace remora::softgpu::host_pages {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr int kAnonymous = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

void* pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }

std::uint64_t map(std::uint64_t at, std::uint64_t size, int protection, int flags) {
  void* const got = mmap(pointer(at), size, protection, kAnonymous | flags, -1, 0);
  return got == MAP_FAILED ? 0 : reinterpret_cast<std::uint64_t>(got);
}

}  // namespace

std::uint64_t take(std::uint64_t size) {
  if (size > UINT64_MAX - kPage) return 0;
  return map(0, align_up(size, kPage), PROT_READ | PROT_WRITE, 0);
}

void give_back(std::uint64_t address, std::uint64_t size) {
  munmap(pointer(address), align_up(size, kPage));
}

std::uint64_t reserve(std::uint64_t size, std::uint64_t alignment, std::uint64_t wanted) {
  if (wanted != 0 && wanted % alignment == 0) {
    const std::uint64_t at = map(wanted, size, PROT_NONE, MAP_FIXED_NOREPLACE);
    if (at == wanted) return at;
    if (at != 0) give_back(at, size);  // a kernel that does not know the flag
  }
  if (size > UINT64_MAX - alignment) return 0;
  const std::uint64_t raw = map(0, size + alignment, PROT_NONE, 0);
  if (raw == 0) return 0;
  const std::uint64_t begin = align_up(raw, alignment);
  if (begin != raw) give_back(raw, begin - raw);
  if (const std::uint64_t rest = raw + alignment - begin; rest != 0) give_back(begin + size, rest);
  return begin;
}

bool map_file(std::uint64_t address, std::uint64_t size, int descriptor) {
  return mmap(pointer(address), size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, descriptor,
              0) != MAP_FAILED;
}

void close_up(std::uint64_t address, std::uint64_t size) {
  map(address, size, PROT_NONE, MAP_FIXED);
}

}  // namespace remora::softgpu::host_pages
