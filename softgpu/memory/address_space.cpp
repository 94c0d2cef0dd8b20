// SPDX-License-Identifier: Apache-2.0
#include "softgpu/memory/address_space.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>

#include "base/bytes.h"
#include "softgpu/memory/host_pages.h"

namespace remora::softgpu {
namespace {

constexpr DeviceSet bit(int device) { return DeviceSet{1} << device; }

/// Counted as CUDA carves it: allocations are at least 512 bytes apart.
std::uint64_t charged(std::uint64_t size) { return align_up(size, 512); }

}  // namespace

class AddressSpace::View final : public MemoryMap {
 public:
  View(const AddressSpace& space, int device) : space_(space), device_(bit(device)) {}

  bool find(std::uint64_t address, MemoryRange& range) const override {
    const std::shared_lock hold(space_.mutex_);
    const Range* found = space_.find_locked(address);
    if (found == nullptr || (found->readers & device_) == 0) return false;
    range = {found->begin, found->end(), (found->writers & device_) != 0};
    return true;
  }

 private:
  const AddressSpace& space_;
  const DeviceSet device_;
};

AddressSpace::Physical::~Physical() {
  if (descriptor >= 0) close(descriptor);
}

AddressSpace::AddressSpace(int devices, std::uint64_t bytes_per_device)
    : capacity_(bytes_per_device), everyone_(bit(devices) - 1), used_(devices, 0) {
  for (int i = 0; i < devices; ++i) views_.push_back(std::make_unique<View>(*this, i));
}

AddressSpace::~AddressSpace() = default;

std::uint64_t AddressSpace::left_locked(int device) const {
  return capacity_ - std::min(used_[device], capacity_);
}

std::uint64_t AddressSpace::free_bytes(int device) const {
  const std::shared_lock hold(mutex_);
  return left_locked(device);
}

const MemoryMap& AddressSpace::view(int device) const { return *views_[device]; }

void AddressSpace::raise_generations() {
  for (const auto& view : views_) view->generation.fetch_add(1, std::memory_order_release);
}

// --- Allocations -------------------------------------------------------------------------------

CUresult AddressSpace::allocate(int device, std::uint64_t size, std::uint64_t& address) {
  if (size == 0) return CUDA_ERROR_INVALID_VALUE;
  const std::unique_lock hold(mutex_);
  if (size > capacity_ || charged(size) > left_locked(device)) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::uint64_t at = host_pages::take(size);
  if (at == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  used_[device] += charged(size);
  insert_locked({at, size, Kind::device, device, bit(device), bit(device)});
  address = at;
  return CUDA_SUCCESS;
}

CUresult AddressSpace::release(std::uint64_t address) {
  const std::unique_lock hold(mutex_);
  Range range;
  if (const CUresult result = take_locked(address, Kind::device, range)) return result;
  used_[range.device] -= charged(range.size);
  host_pages::give_back(address, range.size);
  return CUDA_SUCCESS;
}

CUresult AddressSpace::allocate_host(int device, std::uint64_t size, unsigned flags,
                                     void*& address) {
  if (size == 0) return CUDA_ERROR_INVALID_VALUE;
  const std::uint64_t at = host_pages::take(size);
  if (at == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::unique_lock hold(mutex_);
  insert_locked({at, size, Kind::host_allocated, device, everyone_, everyone_, flags});
  address = reinterpret_cast<void*>(at);
  return CUDA_SUCCESS;
}

CUresult AddressSpace::release_host(void* address) {
  const std::unique_lock hold(mutex_);
  const auto at = reinterpret_cast<std::uint64_t>(address);
  Range range;
  if (const CUresult result = take_locked(at, Kind::host_allocated, range)) return result;
  host_pages::give_back(at, range.size);
  return CUDA_SUCCESS;
}

CUresult AddressSpace::register_host(int device, void* address, std::uint64_t size,
                                     unsigned flags) {
  const auto begin = reinterpret_cast<std::uint64_t>(address);
  if (address == nullptr || size == 0 || !checked_sum(begin, size)) return CUDA_ERROR_INVALID_VALUE;
  const std::unique_lock hold(mutex_);
  if (overlaps_locked(begin, size)) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  const DeviceSet writers = (flags & CU_MEMHOSTREGISTER_READ_ONLY) != 0 ? 0 : everyone_;
  insert_locked({begin, size, Kind::host_registered, device, everyone_, writers, flags});
  return CUDA_SUCCESS;
}

CUresult AddressSpace::unregister_host(void* address) {
  if (address == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::unique_lock hold(mutex_);
  Range range;
  const CUresult result =
      take_locked(reinterpret_cast<std::uint64_t>(address), Kind::host_registered, range);
  return result == CUDA_SUCCESS ? result : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}

// --- Virtual memory management -----------------------------------------------------------------

CUresult AddressSpace::reserve(std::uint64_t size, std::uint64_t alignment, std::uint64_t wanted,
                               std::uint64_t& address) {
  alignment = std::max(alignment, kGranularity);
  if (size == 0 || size % kGranularity != 0 || !std::has_single_bit(alignment)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const std::uint64_t begin = host_pages::reserve(size, alignment, wanted);
  if (begin == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::unique_lock hold(mutex_);
  reservations_[begin] = size;
  address = begin;
  return CUDA_SUCCESS;
}

CUresult AddressSpace::unreserve(std::uint64_t address, std::uint64_t size) {
  const std::unique_lock hold(mutex_);
  const auto at = reservations_.find(address);
  if (at == reservations_.end() || at->second != size) return CUDA_ERROR_INVALID_VALUE;
  const auto mapped = mappings_.lower_bound(address);
  if (mapped != mappings_.end() && mapped->first < address + size) return CUDA_ERROR_INVALID_VALUE;
  reservations_.erase(at);
  host_pages::give_back(address, size);
  return CUDA_SUCCESS;
}

CUresult AddressSpace::create(int device, std::uint64_t size, std::uint64_t& handle) {
  if (size == 0 || size % kGranularity != 0) return CUDA_ERROR_INVALID_VALUE;
  const std::unique_lock hold(mutex_);
  if (size > left_locked(device)) return CUDA_ERROR_OUT_OF_MEMORY;
  auto physical = std::make_shared<Physical>();
  physical->device = device;
  physical->descriptor = memfd_create("remora-softgpu", MFD_CLOEXEC);
  if (physical->descriptor < 0 || ftruncate(physical->descriptor, static_cast<off_t>(size)) != 0) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  physical->size = size;
  used_[device] += size;
  handle = next_handle_++;
  handles_[handle] = std::move(physical);
  return CUDA_SUCCESS;
}

/// Memory lives on while a handle or a mapping refers to it.
void AddressSpace::forget_physical_locked(std::shared_ptr<Physical> physical) {
  if (physical.use_count() == 1) used_[physical->device] -= physical->size;
}

CUresult AddressSpace::release_handle(std::uint64_t handle) {
  const std::unique_lock hold(mutex_);
  const auto at = handles_.find(handle);
  if (at == handles_.end()) return CUDA_ERROR_INVALID_VALUE;
  std::shared_ptr<Physical> physical = std::move(at->second);
  handles_.erase(at);
  forget_physical_locked(std::move(physical));
  return CUDA_SUCCESS;
}

bool AddressSpace::inside_reservation_locked(std::uint64_t address, std::uint64_t size) const {
  auto at = reservations_.upper_bound(address);
  if (at == reservations_.begin()) return false;
  --at;
  const std::uint64_t offset = address - at->first;
  return offset <= at->second && at->second - offset >= size;
}

CUresult AddressSpace::map(std::uint64_t address, std::uint64_t size, std::uint64_t handle) {
  const std::unique_lock hold(mutex_);
  const auto physical = handles_.find(handle);
  if (physical == handles_.end() || size == 0 || size % kGranularity != 0 ||
      address % kGranularity != 0 || size > physical->second->size ||
      !inside_reservation_locked(address, size)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const auto next = mappings_.lower_bound(address);
  if (next != mappings_.end() && next->first < address + size) return CUDA_ERROR_INVALID_VALUE;
  if (next != mappings_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second.size > address) return CUDA_ERROR_INVALID_VALUE;
  }
  if (!host_pages::map_file(address, size, physical->second->descriptor)) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  mappings_[address] = {size, physical->second};
  return CUDA_SUCCESS;
}

/// Whether the range is one or more mappings, each as a whole.
bool AddressSpace::whole_mappings_locked(std::uint64_t address, std::uint64_t size) const {
  if (size == 0) return false;
  std::uint64_t reached = address;
  for (auto at = mappings_.find(address);
       at != mappings_.end() && at->first == reached && reached - address < size; ++at) {
    reached += at->second.size;
  }
  return reached - address == size;
}

CUresult AddressSpace::set_access(std::uint64_t address, std::uint64_t size, int device,
                                  bool readable, bool writable) {
  const std::unique_lock hold(mutex_);
  if (!whole_mappings_locked(address, size)) return CUDA_ERROR_INVALID_VALUE;
  // No device reaches another's memory yet.
  for (auto at = mappings_.find(address); at != mappings_.end() && at->first < address + size; ++at) {
    if (at->second.physical->device != device) return CUDA_ERROR_INVALID_DEVICE;
  }
  for (auto at = mappings_.find(address); at != mappings_.end() && at->first < address + size; ++at) {
    ranges_.erase(at->first);
    if (!readable) continue;
    insert_locked({at->first, at->second.size, Kind::mapped, device, bit(device),
                   writable ? bit(device) : 0});
  }
  raise_generations();
  return CUDA_SUCCESS;
}

CUresult AddressSpace::get_access(std::uint64_t address, int device, bool& readable,
                                  bool& writable) const {
  const std::shared_lock hold(mutex_);
  auto at = mappings_.upper_bound(address);
  if (at == mappings_.begin()) return CUDA_ERROR_INVALID_VALUE;
  --at;
  if (address - at->first >= at->second.size) return CUDA_ERROR_INVALID_VALUE;
  const Range* range = find_locked(address);
  readable = range != nullptr && (range->readers & bit(device)) != 0;
  writable = range != nullptr && (range->writers & bit(device)) != 0;
  return CUDA_SUCCESS;
}

CUresult AddressSpace::unmap(std::uint64_t address, std::uint64_t size) {
  const std::unique_lock hold(mutex_);
  if (!whole_mappings_locked(address, size)) return CUDA_ERROR_INVALID_VALUE;
  for (auto at = mappings_.find(address); at != mappings_.end() && at->first < address + size;) {
    ranges_.erase(at->first);
    std::shared_ptr<Physical> physical = std::move(at->second.physical);
    at = mappings_.erase(at);
    forget_physical_locked(std::move(physical));
  }
  raise_generations();
  host_pages::close_up(address, size);
  return CUDA_SUCCESS;
}

// --- Ranges ------------------------------------------------------------------------------------

AddressSpace::Range& AddressSpace::insert_locked(Range range) {
  range.id = next_id_++;
  return ranges_[range.begin] = range;
}

CUresult AddressSpace::take_locked(std::uint64_t address, Kind kind, Range& taken) {
  const auto at = ranges_.find(address);
  if (at == ranges_.end() || at->second.kind != kind) return CUDA_ERROR_INVALID_VALUE;
  taken = at->second;
  ranges_.erase(at);
  raise_generations();
  return CUDA_SUCCESS;
}

const AddressSpace::Range* AddressSpace::find_locked(std::uint64_t address) const {
  auto at = ranges_.upper_bound(address);
  if (at == ranges_.begin()) return nullptr;
  --at;
  return address < at->second.end() ? &at->second : nullptr;
}

bool AddressSpace::overlaps_locked(std::uint64_t address, std::uint64_t size) const {
  const auto next = ranges_.lower_bound(address);
  return (next != ranges_.end() && next->first - address < size) || find_locked(address) != nullptr;
}

std::optional<AddressSpace::Range> AddressSpace::range_of(std::uint64_t address) const {
  const std::shared_lock hold(mutex_);
  const Range* range = find_locked(address);
  return range != nullptr ? std::optional(*range) : std::nullopt;
}

bool AddressSpace::covers(std::uint64_t address, std::uint64_t size, bool write) const {
  const std::shared_lock hold(mutex_);
  while (size != 0) {
    const Range* range = find_locked(address);
    if (range == nullptr || (write && range->writers == 0)) return false;
    const std::uint64_t here = std::min(size, range->end() - address);
    address += here;
    size -= here;
  }
  return true;
}

}  // namespace remora::softgpu
