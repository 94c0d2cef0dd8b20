// SPDX-License-Identifier: Apache-2.0
// What an address of this process is to CUDA: device memory that the client allocated, a foreign
// range that the driver placed (a module's global), pinned host memory, or none of these. Copies
// with an inferred direction, pointer attributes and the range checks of posted copies ask here, so
// that none of them needs the server.
//
// Thread-safe. Ranges never overlap; add() refuses one that would.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <shared_mutex>

namespace remora::client_shim {

struct Context;

struct PointerRange {
  enum class Kind : std::uint8_t {
    device,      // cuMemAlloc: from a session's window
    foreign,     // placed by the driver: globals of modules
    pinned,      // cuMemHostAlloc: allocated by the client
    registered,  // cuMemHostRegister: the program's own memory
  };
  std::uint64_t base = 0;
  std::uint64_t size = 0;  // as the program asked for
  Kind kind = Kind::device;
  unsigned flags = 0;          // of cuMemHostAlloc or cuMemHostRegister
  Context* context = nullptr;  // where it was made
  std::uint64_t buffer_id = 0;

  bool is_device() const { return kind == Kind::device || kind == Kind::foreign; }
  /// Whether [address, address + bytes) lies inside.
  bool holds(std::uint64_t address, std::uint64_t bytes) const {
    return address >= base && address - base <= size && size - (address - base) >= bytes;
  }
};

class PointerMap {
 public:
  /// False when the range is empty, wraps, or overlaps a known one. Gives the range its buffer id.
  bool add(PointerRange range);

  /// Removes the range that starts at `base` and returns it.
  std::optional<PointerRange> remove(std::uint64_t base);

  /// The range that holds `address`.
  std::optional<PointerRange> find(std::uint64_t address) const;

  /// Takes out every range of `context`, one at a time, for its destruction.
  std::optional<PointerRange> remove_one_of(const Context* context);

 private:
  mutable std::shared_mutex mutex_;               // guards ranges_ and next_buffer_id_
  std::map<std::uint64_t, PointerRange> ranges_;  // by base
  std::uint64_t next_buffer_id_ = 1;
};

}  // namespace remora::client_shim
