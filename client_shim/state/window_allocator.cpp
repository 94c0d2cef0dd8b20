// SPDX-License-Identifier: Apache-2.0
#include "client_shim/state/window_allocator.h"

#include <iterator>

#include "base/bytes.h"

namespace remora::client_shim {

WindowAllocator::WindowAllocator(const Window& window) : window_(window) {
  add_hole(window.base, align_down(window.size, kAlignment));
}

std::optional<WindowAllocator::Carved> WindowAllocator::carve(std::uint64_t size) {
  if (size == 0 || size > window_.size) return std::nullopt;
  size = align_up(size, kAlignment);
  const auto fit = holes_by_size_.lower_bound({size, 0});
  if (fit == holes_by_size_.end()) return std::nullopt;

  const auto [hole_size, address] = *fit;
  holes_by_size_.erase(fit);
  holes_.erase(address);
  if (hole_size > size) add_hole(address + size, hole_size - size);

  allocations_.emplace(address, Allocation{size, false});
  allocated_bytes_ += size;
  return Carved{address, is_committed(address, size)};
}

void WindowAllocator::confirm(std::uint64_t address) {
  const auto found = allocations_.find(address);
  if (found == allocations_.end() || found->second.confirmed) return;
  found->second.confirmed = true;
  count_edge_chunks(address, found->second.size, +1);
}

bool WindowAllocator::release(std::uint64_t address) {
  const auto found = allocations_.find(address);
  if (found == allocations_.end()) return false;
  const Allocation allocation = found->second;
  allocations_.erase(found);
  allocated_bytes_ -= allocation.size;
  if (allocation.confirmed) count_edge_chunks(address, allocation.size, -1);

  std::uint64_t begin = address;
  std::uint64_t size = allocation.size;
  auto next = holes_.lower_bound(address);
  if (next != holes_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == begin) {
      begin = before->first;
      size += before->second;
      holes_by_size_.erase({before->second, before->first});
      holes_.erase(before);
    }
  }
  if (next != holes_.end() && address + allocation.size == next->first) {
    size += next->second;
    holes_by_size_.erase({next->second, next->first});
    holes_.erase(next);
  }
  add_hole(begin, size);
  return true;
}

void WindowAllocator::add_hole(std::uint64_t address, std::uint64_t size) {
  if (size == 0) return;
  holes_.emplace(address, size);
  holes_by_size_.emplace(size, address);
}

// Only the first and the last chunk of a range can be shared with another allocation: a chunk that
// lies between them belongs to this range alone. So counts are kept for those two, and a range with
// such an inner chunk beyond the prefix cannot have credit.

bool WindowAllocator::is_committed(std::uint64_t address, std::uint64_t size) const {
  const std::uint64_t first = chunk_of(address);
  const std::uint64_t last = chunk_of(address + size - 1);
  if (last - first >= 2 && !is_in_prefix(last - 1)) return false;
  return (is_in_prefix(first) || confirmed_in_chunk_.contains(first)) &&
         (is_in_prefix(last) || confirmed_in_chunk_.contains(last));
}

void WindowAllocator::count_edge_chunks(std::uint64_t address, std::uint64_t size, int change) {
  const std::uint64_t first = chunk_of(address);
  const std::uint64_t last = chunk_of(address + size - 1);
  count_chunk(first, change);
  if (last != first) count_chunk(last, change);
}

void WindowAllocator::count_chunk(std::uint64_t chunk, int change) {
  if (is_in_prefix(chunk)) return;
  std::uint32_t& count = confirmed_in_chunk_[chunk];
  count += static_cast<std::uint32_t>(change);
  if (count == 0) confirmed_in_chunk_.erase(chunk);
}

}  // namespace remora::client_shim
