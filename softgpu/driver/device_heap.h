// SPDX-License-Identifier: Apache-2.0
// What kernels allocate with malloc(): blocks of one device allocation that is made when the first
// kernel asks, as large as CU_LIMIT_MALLOC_HEAP_SIZE says then. It stays until its context ends.
//
// Threads: allocate() and release() from many workers at once. No pointer into the heap is handed to
// AddressSpace::release(), so a kernel's mistake with one cannot unmap a page under another kernel.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "softgpu/memory/address_space.h"

namespace remora::softgpu {

class DeviceHeap {
 public:
  /// A block, 16-byte aligned; 0 when there is none.
  std::uint64_t allocate(AddressSpace& memory, int device, std::uint64_t heap_size,
                         std::uint64_t size);
  /// False for what is no block.
  bool release(std::uint64_t address);
  /// Gives the whole heap back. No kernel runs.
  void clear(AddressSpace& memory);

 private:
  std::mutex mutex_;  // guards what follows
  std::uint64_t begin_ = 0;
  std::map<std::uint64_t, std::uint64_t> free_;  // begin to size, never adjacent
  std::map<std::uint64_t, std::uint64_t> used_;
};

}  // namespace remora::softgpu
