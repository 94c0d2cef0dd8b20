// SPDX-License-Identifier: Apache-2.0
#include "client_shim/state/pointer_map.h"

#include <iterator>
#include <mutex>

namespace remora::client_shim {

bool PointerMap::add(PointerRange range) {
  if (range.size == 0 || range.base + range.size < range.base) return false;
  const std::lock_guard lock(mutex_);
  const auto next = ranges_.lower_bound(range.base);
  if (next != ranges_.end() && next->first < range.base + range.size) return false;
  if (next != ranges_.begin()) {
    const PointerRange& before = std::prev(next)->second;
    if (before.base + before.size > range.base) return false;
  }
  range.buffer_id = next_buffer_id_++;
  ranges_.emplace_hint(next, range.base, range);
  return true;
}

std::optional<PointerRange> PointerMap::remove(std::uint64_t base) {
  const std::lock_guard lock(mutex_);
  const auto found = ranges_.find(base);
  if (found == ranges_.end()) return std::nullopt;
  const PointerRange range = found->second;
  ranges_.erase(found);
  return range;
}

std::optional<PointerRange> PointerMap::find(std::uint64_t address) const {
  const std::shared_lock lock(mutex_);
  const auto after = ranges_.upper_bound(address);
  if (after == ranges_.begin()) return std::nullopt;
  const PointerRange& range = std::prev(after)->second;
  if (address - range.base >= range.size) return std::nullopt;
  return range;
}

std::optional<PointerRange> PointerMap::remove_one_of(const Context* context) {
  const std::lock_guard lock(mutex_);
  for (auto at = ranges_.begin(); at != ranges_.end(); ++at) {
    if (at->second.context != context) continue;
    const PointerRange range = at->second;
    ranges_.erase(at);
    return range;
  }
  return std::nullopt;
}

}  // namespace remora::client_shim
