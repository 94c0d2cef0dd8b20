// SPDX-License-Identifier: Apache-2.0
// The memory contract between the execution engine and whoever owns device memory. Global memory is
// plain host memory of this process at the very address the program uses; the engine asks the map
// which allocation an address lies in and refuses every access that does not lie in one as a whole,
// so an out-of-bounds access is found exactly, per allocation. Shared, local and parameter memory
// have fixed windows in the generic address space, outside anything a host can map.
//
// Threads: find() is called from all workers at once. The engine caches what it returns and drops
// its caches when `generation` changes.
#pragma once

#include <atomic>
#include <cstdint>

namespace remora::softgpu {

struct MemoryRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;  // one past the last byte
  bool writable = true;
};

class MemoryMap {
 public:
  virtual ~MemoryMap() = default;

  /// The allocation that contains `address`: a device allocation, a module's global, a mapping, or
  /// registered host memory.
  virtual bool find(std::uint64_t address, MemoryRange& range) const = 0;

  /// Raised (release) after a range was removed or narrowed; adding ranges needs no raise.
  std::atomic<std::uint64_t> generation{0};
};

/// Windows of the generic address space. Their bits above 47 are set, so no host mapping can lie
/// in them; an offset into the window is the address in the state space itself.
inline constexpr std::uint64_t kSharedWindow = 0x00a0'0000'0000'0000;
inline constexpr std::uint64_t kLocalWindow = 0x00a1'0000'0000'0000;
inline constexpr std::uint64_t kParamWindow = 0x00a2'0000'0000'0000;
/// Not memory: what the address of a device function looks like (16 bytes apart, in module order).
inline constexpr std::uint64_t kFunctionWindow = 0x00a3'0000'0000'0000;
inline constexpr std::uint64_t kWindowSize = 0x1'0000'0000;

constexpr bool in_window(std::uint64_t address, std::uint64_t window) {
  return address - window < kWindowSize;
}

}  // namespace remora::softgpu
