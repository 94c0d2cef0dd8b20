// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/device_heap.h"

#include <algorithm>

#include "base/bytes.h"

namespace remora::softgpu {
namespace {
constexpr std::uint64_t kAlignment = 16;
}

std::uint64_t DeviceHeap::allocate(AddressSpace& memory, int device, std::uint64_t heap_size,
                                   std::uint64_t size) {
  if (size == 0 || size > heap_size) return 0;
  size = align_up(size, kAlignment);
  const std::lock_guard hold(mutex_);
  if (begin_ == 0) {
    if (memory.allocate(device, heap_size, begin_) != CUDA_SUCCESS) return 0;
    free_[begin_] = align_down(heap_size, kAlignment);
  }
  const auto at = std::find_if(free_.begin(), free_.end(),
                               [&](const auto& block) { return block.second >= size; });
  if (at == free_.end()) return 0;
  const auto [address, available] = *at;
  free_.erase(at);
  if (available > size) free_[address + size] = available - size;
  used_[address] = size;
  return address;
}

bool DeviceHeap::release(std::uint64_t address) {
  const std::lock_guard hold(mutex_);
  const auto at = used_.find(address);
  if (at == used_.end()) return false;
  std::uint64_t size = at->second;
  used_.erase(at);
  auto next = free_.lower_bound(address);
  if (next != free_.end() && next->first == address + size) {
    size += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == address) {
      before->second += size;
      return true;
    }
  }
  free_[address] = size;
  return true;
}

void DeviceHeap::clear(AddressSpace& memory) {
  const std::lock_guard hold(mutex_);
  if (begin_ != 0) memory.release(begin_);
  begin_ = 0;
  free_.clear();
  used_.clear();
}

}  // namespace remora::softgpu
