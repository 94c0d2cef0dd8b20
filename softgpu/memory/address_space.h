// SPDX-License-Identifier: Apache-2.0
// The memory of all software devices of a process: what is allocated, reserved, mapped and
// registered, which device may reach it, and how much each device has left. Device memory is host
// memory of this process at the same address, so a device address is a host address, and pinned
// host memory is device memory as well.
//
// Threads: everything from any thread. find() of a view is the path of the engine's misses.
// Errors: CUDA's results, as the calls of the same names in the driver API return them. Nothing
// here waits for work under way; whoever takes memory away does that first.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <vector>

#include "softgpu/driver/cuda_api.h"
#include "softgpu/exec/access.h"

namespace remora::softgpu {

/// A set of devices, bit n for device n.
using DeviceSet = std::uint32_t;
inline constexpr int kMaxDevices = 16;

class AddressSpace {
 public:
  enum class Kind { device, host_allocated, host_registered, mapped };
  struct Range {
    std::uint64_t begin = 0;
    std::uint64_t size = 0;
    Kind kind = Kind::device;
    int device = 0;  // where it lies; of host memory the device of the calling context
    DeviceSet readers = 0;
    DeviceSet writers = 0;
    unsigned flags = 0;    // of cuMemHostAlloc or cuMemHostRegister
    std::uint64_t id = 0;  // unique for ever: CU_POINTER_ATTRIBUTE_BUFFER_ID
    std::uint64_t end() const { return begin + size; }
    bool is_host() const { return kind == Kind::host_allocated || kind == Kind::host_registered; }
  };

  AddressSpace(int devices, std::uint64_t bytes_per_device);
  ~AddressSpace();

  std::uint64_t capacity() const { return capacity_; }
  std::uint64_t free_bytes(int device) const;

  /// What kernels of a device can reach.
  const MemoryMap& view(int device) const;

  /// Page-aligned, contents zero.
  CUresult allocate(int device, std::uint64_t size, std::uint64_t& address);
  CUresult release(std::uint64_t address);

  CUresult allocate_host(int device, std::uint64_t size, unsigned flags, void*& address);
  CUresult release_host(void* address);
  CUresult register_host(int device, void* address, std::uint64_t size, unsigned flags);
  CUresult unregister_host(void* address);

  // Virtual memory management.
  static constexpr std::uint64_t kGranularity = 2u << 20;
  CUresult reserve(std::uint64_t size, std::uint64_t alignment, std::uint64_t wanted,
                   std::uint64_t& address);
  CUresult unreserve(std::uint64_t address, std::uint64_t size);
  CUresult create(int device, std::uint64_t size, std::uint64_t& handle);
  CUresult release_handle(std::uint64_t handle);
  CUresult map(std::uint64_t address, std::uint64_t size, std::uint64_t handle);
  CUresult set_access(std::uint64_t address, std::uint64_t size, int device, bool readable,
                      bool writable);
  /// Whether `device` may read and write what is mapped at an address.
  CUresult get_access(std::uint64_t address, int device, bool& readable, bool& writable) const;
  CUresult unmap(std::uint64_t address, std::uint64_t size);

  std::optional<Range> range_of(std::uint64_t address) const;
  /// Whether all of [address, address + size) lies in ranges, over as many as it takes.
  bool covers(std::uint64_t address, std::uint64_t size, bool write) const;

 private:
  class View;
  struct Physical {
    int device = 0;
    int descriptor = -1;  // a memory file
    std::uint64_t size = 0;
    ~Physical();
  };
  struct Mapping {
    std::uint64_t size = 0;
    std::shared_ptr<Physical> physical;
  };

  const Range* find_locked(std::uint64_t address) const;
  bool overlaps_locked(std::uint64_t address, std::uint64_t size) const;
  Range& insert_locked(Range range);
  CUresult take_locked(std::uint64_t address, Kind kind, Range& taken);
  bool inside_reservation_locked(std::uint64_t address, std::uint64_t size) const;
  bool whole_mappings_locked(std::uint64_t address, std::uint64_t size) const;
  void forget_physical_locked(std::shared_ptr<Physical> physical);
  void raise_generations();
  std::uint64_t left_locked(int device) const;

  const std::uint64_t capacity_;
  const DeviceSet everyone_;
  std::vector<std::unique_ptr<View>> views_;

  mutable std::shared_mutex mutex_;  // guards what follows
  std::vector<std::uint64_t> used_;  // by device
  std::uint64_t next_id_ = 1;
  std::uint64_t next_handle_ = 1;
  std::map<std::uint64_t, Range> ranges_;                // by begin
  std::map<std::uint64_t, std::uint64_t> reservations_;  // begin to size
  std::map<std::uint64_t, Mapping> mappings_;            // by begin
  std::map<std::uint64_t, std::shared_ptr<Physical>> handles_;
};

}  // namespace remora::softgpu
