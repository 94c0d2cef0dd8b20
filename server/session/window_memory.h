// SPDX-License-Identifier: Apache-2.0
// The memory behind one device's address window. The client chooses every address; this puts memory
// there, by the rule that the client's allocator also follows, so that both know without asking which
// addresses have memory: the first `committed_bytes` have it for the session's life, and every other
// chunk of `granularity` bytes exactly while an allocation overlaps it.
//
// Not thread-safe: reserved before the session serves, then of the blocking lane. The device's context
// must be current.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/result.h"
#include "protocol/wire/control.h"
#include "server/driver_table.h"

namespace remora::server {

class WindowMemory {
 public:
  /// Reserves addresses at `base` if the driver gives them, else elsewhere.
  static Result<WindowMemory> reserve(const DriverTable& driver, CUdevice device, std::uint64_t base,
                                      std::uint64_t size);

  WindowMemory(WindowMemory&&) = default;

  /// Gives the reservation back and takes one at `base`, or elsewhere. Nothing may be
  /// allocated.
  Result<> move_to(std::uint64_t base);
  /// Puts memory behind the first `bytes`.
  Result<> commit_prefix(std::uint64_t bytes);

  const protocol::AddressWindow& window() const { return window_; }

  CUresult allocate(std::uint64_t address, std::uint64_t size);
  /// INVALID_VALUE when nothing was allocated at the address.
  CUresult free(std::uint64_t address);

 private:
  struct Piece {  // of mapped memory
    CUmemGenericAllocationHandle handle = 0;
    std::uint64_t size = 0;
    unsigned users = 0;
  };

  WindowMemory(const DriverTable& driver, CUdevice device) : driver_(&driver), device_(device) {}

  CUmemAllocationProp properties() const;
  Result<> take_addresses(std::uint64_t base);
  CUresult map(std::uint64_t chunk, std::uint64_t count);
  void unmap(std::uint64_t chunk);
  bool is_in_prefix(std::uint64_t chunk) const {
    return (chunk + 1) * window_.granularity <= window_.committed_bytes;
  }
  std::vector<std::pair<std::uint64_t, std::uint64_t>> pieces_of(std::uint64_t address,
                                                                std::uint64_t size) const;

  const DriverTable* driver_;
  CUdevice device_;
  protocol::AddressWindow window_;
  std::map<std::uint64_t, Piece> pieces_;                // by first chunk
  std::map<std::uint64_t, std::uint64_t> allocations_;  // address to size
};

}  // namespace remora::server
