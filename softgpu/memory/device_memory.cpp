// SPDX-License-Identifier: Apache-2.0
#include "softgpu/memory/device_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <mutex>

#include "base/bytes.h"

namespace remora::softgpu {
namespace {

constexpr std::uint64_t kPage = 4096;

/// Private, zero, and with pages only where it is touched; null when the host has none.
void* map_pages(std::uint64_t size) {
  void* at = mmap(nullptr, align_up(size, kPage), PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return at == MAP_FAILED ? nullptr : at;
}

void* as_pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }

}  // namespace

DeviceMemory::Physical::~Physical() {
  if (descriptor >= 0) close(descriptor);
}

std::uint64_t DeviceMemory::free_bytes() const {
  const std::shared_lock hold(mutex_);
  return capacity_ - std::min(used_, capacity_);
}

CUresult DeviceMemory::allocate(std::uint64_t size, std::uint64_t& address) {
  if (size == 0) return CUDA_ERROR_INVALID_VALUE;
  const std::unique_lock hold(mutex_);
  // Counted as it is carved: CUDA's allocations are at least 512 bytes apart.
  const std::uint64_t charged = align_up(size, 512);
  if (size > capacity_ || charged > capacity_ - used_) return CUDA_ERROR_OUT_OF_MEMORY;
  void* at = map_pages(size);
  if (at == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  used_ += charged;
  address = reinterpret_cast<std::uint64_t>(at);
  insert_locked({address, size, Kind::device});
  return CUDA_SUCCESS;
}

CUresult DeviceMemory::take_range(std::uint64_t address, Kind kind, Range& taken) {
  const auto at = ranges_.find(address);
  if (at == ranges_.end() || at->second.kind != kind) return CUDA_ERROR_INVALID_VALUE;
  taken = at->second;
  ranges_.erase(at);
  generation.fetch_add(1, std::memory_order_release);
  return CUDA_SUCCESS;
}

CUresult DeviceMemory::release(std::uint64_t address) {
  const std::unique_lock hold(mutex_);
  Range range;
  if (const CUresult result = take_range(address, Kind::device, range)) return result;
  used_ -= align_up(range.size, 512);
  munmap(as_pointer(address), align_up(range.size, kPage));
  return CUDA_SUCCESS;
}

CUresult DeviceMemory::allocate_host(std::uint64_t size, unsigned flags, void*& address) {
  if (size == 0) return CUDA_ERROR_INVALID_VALUE;
  address = map_pages(size);
  if (address == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::unique_lock hold(mutex_);
  insert_locked({reinterpret_cast<std::uint64_t>(address), size, Kind::host_allocated, true, flags});
  return CUDA_SUCCESS;
}

CUresult DeviceMemory::release_host(void* address) {
  const std::unique_lock hold(mutex_);
  Range range;
  const CUresult result =
      take_range(reinterpret_cast<std::uint64_t>(address), Kind::host_allocated, range);
  if (result == CUDA_SUCCESS) munmap(address, align_up(range.size, kPage));
  return result;
}

CUresult DeviceMemory::register_host(void* address, std::uint64_t size, unsigned flags) {
  if (address == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
  const auto begin = reinterpret_cast<std::uint64_t>(address);
  const std::unique_lock hold(mutex_);
  const auto next = ranges_.lower_bound(begin);
  const bool overlaps = (next != ranges_.end() && next->first - begin < size) ||
                        find_locked(begin) != nullptr;
  if (overlaps) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  const bool read_only = flags & CU_MEMHOSTREGISTER_READ_ONLY;
  insert_locked({begin, size, Kind::host_registered, !read_only, flags});
  return CUDA_SUCCESS;
}

CUresult DeviceMemory::unregister_host(void* address) {
  const std::unique_lock hold(mutex_);
  Range range;
  const CUresult result =
      take_range(reinterpret_cast<std::uint64_t>(address), Kind::host_registered, range);
  return result == CUDA_SUCCESS ? result : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}

// --- Virtual memory management -----------------------------------------------------------------

CUresult DeviceMemory::reserve(std::uint64_t size, std::uint64_t alignment, std::uint64_t wanted,
                               std::uint64_t& address) {
  alignment = std::max(alignment, kGranularity);
  if (size == 0 || size % kGranularity != 0 || !std::has_single_bit(alignment) ||
      wanted % kPage != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  std::uint64_t begin = 0;
  // The wish is a hint: another address will do.
  if (wanted != 0 && wanted % alignment == 0) {
    void* at = mmap(as_pointer(wanted), size, PROT_NONE, kFlags | MAP_FIXED_NOREPLACE, -1, 0);
    if (at == as_pointer(wanted)) {
      begin = wanted;
    } else if (at != MAP_FAILED) {
      munmap(at, size);
    }
  }
  if (begin == 0) {
    void* at = mmap(nullptr, size + alignment, PROT_NONE, kFlags, -1, 0);
    if (at == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
    const auto raw = reinterpret_cast<std::uint64_t>(at);
    begin = align_up(raw, alignment);
    if (begin != raw) munmap(at, begin - raw);
    if (const std::uint64_t rest = raw + size + alignment - (begin + size); rest != 0) {
      munmap(as_pointer(begin + size), rest);
    }
  }
  const std::unique_lock hold(mutex_);
  reservations_[begin] = size;
  address = begin;
  return CUDA_SUCCESS;
}

CUresult DeviceMemory::unreserve(std::uint64_t address, std::uint64_t size) {
  const std::unique_lock hold(mutex_);
  const auto at = reservations_.find(address);
  if (at == reservations_.end() || at->second != size) return CUDA_ERROR_INVALID_VALUE;
  const auto mapped = mappings_.lower_bound(address);
  if (mapped != mappings_.end() && mapped->first < address + size) return CUDA_ERROR_INVALID_VALUE;
  reservations_.erase(at);
  munmap(as_pointer(address), size);
  return CUDA_SUCCESS;
}

CUresult DeviceMemory::create(std::uint64_t size, std::uint64_t& handle) {
  if (size == 0 || size % kGranularity != 0) return CUDA_ERROR_INVALID_VALUE;
  const std::unique_lock hold(mutex_);
  if (size > capacity_ - std::min(used_, capacity_)) return CUDA_ERROR_OUT_OF_MEMORY;
  auto physical = std::make_shared<Physical>();
  physical->descriptor = memfd_create("remora-softgpu", MFD_CLOEXEC);
  if (physical->descriptor < 0 || ftruncate(physical->descriptor, static_cast<off_t>(size)) != 0) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  physical->size = size;
  used_ += size;
  handle = next_handle_++;
  handles_[handle] = std::move(physical);
  return CUDA_SUCCESS;
}

CUresult DeviceMemory::release_handle(std::uint64_t handle) {
  const std::unique_lock hold(mutex_);
  const auto at = handles_.find(handle);
  if (at == handles_.end()) return CUDA_ERROR_INVALID_VALUE;
  // Mapped memory lives on until it is unmapped.
  if (at->second.use_count() == 1) used_ -= at->second->size;
  handles_.erase(at);
  return CUDA_SUCCESS;
}

bool DeviceMemory::inside_reservation_locked(std::uint64_t address, std::uint64_t size) const {
  auto at = reservations_.upper_bound(address);
  if (at == reservations_.begin()) return false;
  --at;
  return address - at->first <= at->second && at->second - (address - at->first) >= size;
}

CUresult DeviceMemory::map(std::uint64_t address, std::uint64_t size, std::uint64_t offset,
                           std::uint64_t handle) {
  const std::unique_lock hold(mutex_);
  const auto physical = handles_.find(handle);
  if (physical == handles_.end() || size == 0 || size % kGranularity != 0 ||
      address % kGranularity != 0 || offset != 0 || size > physical->second->size ||
      !inside_reservation_locked(address, size)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const auto next = mappings_.lower_bound(address);
  if (next != mappings_.end() && next->first < address + size) return CUDA_ERROR_INVALID_VALUE;
  if (next != mappings_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second.size > address) return CUDA_ERROR_INVALID_VALUE;
  }
  void* at = mmap(as_pointer(address), size, PROT_NONE, MAP_SHARED | MAP_FIXED,
                  physical->second->descriptor, 0);
  if (at == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  mappings_[address] = {size, physical->second, false};
  return CUDA_SUCCESS;
}

CUresult DeviceMemory::set_access(std::uint64_t address, std::uint64_t size, bool readable,
                                  bool writable) {
  const std::unique_lock hold(mutex_);
  // The range is one or more whole mappings.
  std::uint64_t covered = address;
  for (auto at = mappings_.find(address); at != mappings_.end() && at->first == covered; ++at) {
    covered += at->second.size;
    if (covered >= address + size) break;
  }
  if (covered != address + size) return CUDA_ERROR_INVALID_VALUE;
  const int protection = (readable ? PROT_READ : 0) | (writable ? PROT_WRITE : 0);
  if (mprotect(as_pointer(address), size, protection) != 0) return CUDA_ERROR_INVALID_VALUE;
  for (auto at = mappings_.find(address); at != mappings_.end() && at->first < address + size; ++at) {
    ranges_.erase(at->first);
    at->second.accessible = readable;
    if (readable) insert_locked({at->first, at->second.size, Kind::mapped, writable});
  }
  generation.fetch_add(1, std::memory_order_release);
  return CUDA_SUCCESS;
}

CUresult DeviceMemory::unmap(std::uint64_t address, std::uint64_t size) {
  const std::unique_lock hold(mutex_);
  std::uint64_t covered = address;
  for (auto at = mappings_.find(address); at != mappings_.end() && at->first == covered; ++at) {
    covered += at->second.size;
    if (covered >= address + size) break;
  }
  if (size == 0 || covered != address + size) return CUDA_ERROR_INVALID_VALUE;
  for (auto at = mappings_.find(address); at != mappings_.end() && at->first < address + size;) {
    ranges_.erase(at->first);
    const std::shared_ptr<Physical> physical = at->second.physical;
    at = mappings_.erase(at);
    // Ours is the last reference when the handle was released and nothing else maps it.
    if (physical.use_count() == 1) used_ -= physical->size;
  }
  generation.fetch_add(1, std::memory_order_release);
  mmap(as_pointer(address), size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
       -1, 0);
  return CUDA_SUCCESS;
}

// --- Look-up -----------------------------------------------------------------------------------

void DeviceMemory::insert_locked(Range range) {
  range.id = next_id_++;
  ranges_[range.begin] = range;
}

const DeviceMemory::Range* DeviceMemory::find_locked(std::uint64_t address) const {
  auto at = ranges_.upper_bound(address);
  if (at == ranges_.begin()) return nullptr;
  --at;
  return address < at->second.end() ? &at->second : nullptr;
}

std::optional<DeviceMemory::Range> DeviceMemory::range_of(std::uint64_t address) const {
  const std::shared_lock hold(mutex_);
  const Range* range = find_locked(address);
  return range != nullptr ? std::optional(*range) : std::nullopt;
}

bool DeviceMemory::covers(std::uint64_t address, std::uint64_t size, bool write) const {
  const std::shared_lock hold(mutex_);
  while (size != 0) {
    const Range* range = find_locked(address);
    if (range == nullptr || (write && !range->writable)) return false;
    const std::uint64_t here = std::min(size, range->end() - address);
    address += here;
    size -= here;
  }
  return true;
}

bool DeviceMemory::find(std::uint64_t address, MemoryRange& range) const {
  const std::shared_lock hold(mutex_);
  const Range* found = find_locked(address);
  if (found == nullptr) return false;
  range = {found->begin, found->end(), found->writable};
  return true;
}

}  // namespace remora::softgpu
