// SPDX-License-Identifier: Apache-2.0
// The memory of one software device: what is allocated, reserved and mapped, and how much is left.
// Device memory is host memory of this process at the same address, so a device address is a host
// address, and pinned host memory is device memory as well.
//
// Threads: everything from any thread. find() is the hot path of the engine's misses.
// Errors: CUDA's results, as the calls of the same names in the driver API return them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <shared_mutex>

#include "softgpu/driver/cuda_api.h"
#include "softgpu/exec/access.h"

namespace remora::softgpu {

class DeviceMemory final : public MemoryMap {
 public:
  enum class Kind { device, host_allocated, host_registered, mapped };
  struct Range {
    std::uint64_t begin = 0;
    std::uint64_t size = 0;
    Kind kind = Kind::device;
    bool writable = true;
    unsigned flags = 0;         // of cuMemHostAlloc or cuMemHostRegister
    std::uint64_t id = 0;       // unique for ever: CU_POINTER_ATTRIBUTE_BUFFER_ID
    std::uint64_t end() const { return begin + size; }
  };

  explicit DeviceMemory(std::uint64_t capacity_bytes) : capacity_(capacity_bytes) {}

  std::uint64_t capacity() const { return capacity_; }
  std::uint64_t free_bytes() const;

  /// At least 256-byte aligned, contents zero.
  CUresult allocate(std::uint64_t size, std::uint64_t& address);
  CUresult release(std::uint64_t address);

  CUresult allocate_host(std::uint64_t size, unsigned flags, void*& address);
  CUresult release_host(void* address);
  CUresult register_host(void* address, std::uint64_t size, unsigned flags);
  CUresult unregister_host(void* address);

  // Virtual memory management.
  static constexpr std::uint64_t kGranularity = 2u << 20;
  CUresult reserve(std::uint64_t size, std::uint64_t alignment, std::uint64_t wanted,
                   std::uint64_t& address);
  CUresult unreserve(std::uint64_t address, std::uint64_t size);
  CUresult create(std::uint64_t size, std::uint64_t& handle);
  CUresult release_handle(std::uint64_t handle);
  CUresult map(std::uint64_t address, std::uint64_t size, std::uint64_t offset, std::uint64_t handle);
  CUresult set_access(std::uint64_t address, std::uint64_t size, bool readable, bool writable);
  CUresult unmap(std::uint64_t address, std::uint64_t size);

  std::optional<Range> range_of(std::uint64_t address) const;
  /// Whether all of [address, address + size) is device-accessible, over as many ranges as it takes.
  bool covers(std::uint64_t address, std::uint64_t size, bool write) const;

  bool find(std::uint64_t address, MemoryRange& range) const override;

 private:
  struct Physical {
    int descriptor = -1;  // a memory file
    std::uint64_t size = 0;
    ~Physical();
  };
  struct Mapping {
    std::uint64_t size = 0;
    std::shared_ptr<Physical> physical;
    bool accessible = false;
  };

  const Range* find_locked(std::uint64_t address) const;
  void insert_locked(Range range);
  CUresult take_range(std::uint64_t address, Kind kind, Range& taken);
  bool inside_reservation_locked(std::uint64_t address, std::uint64_t size) const;

  const std::uint64_t capacity_;
  mutable std::shared_mutex mutex_;
  std::uint64_t used_ = 0;
  std::uint64_t next_id_ = 1;
  std::uint64_t next_handle_ = 1;
  std::map<std::uint64_t, Range> ranges_;              // by begin
  std::map<std::uint64_t, std::uint64_t> reservations_;  // begin to size
  std::map<std::uint64_t, Mapping> mappings_;
  std::map<std::uint64_t, std::shared_ptr<Physical>> handles_;
};

}  // namespace remora::softgpu
