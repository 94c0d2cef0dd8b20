// SPDX-License-Identifier: Apache-2.0
// Hands out device addresses from one session's window. The client chooses every address itself, so
// an allocation whose memory the server has already committed needs no answer ("credit"); beyond it
// the call waits, and out-of-memory comes from the call that asked.
//
// The commit rule is the same on both sides: the first `committed_bytes` stay committed for life;
// every other chunk of `granularity` bytes is committed exactly while at least one allocation
// overlaps it. Here an allocation counts from confirm() on, since until the server has answered
// nobody may rely on its chunks.
//
// Best fit, 512-byte alignment. Not thread-safe: the owner's lock also covers the posting of the
// record, because the server must see allocations and releases in the order in which they happened
// here.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

namespace remora::client_shim {

class WindowAllocator {
 public:
  static constexpr std::uint64_t kAlignment = 512;

  struct Window {
    std::uint64_t base = 0;
    std::uint64_t size = 0;
    std::uint64_t granularity = 0;  // a power of two, at least kAlignment
    std::uint64_t committed_bytes = 0;
  };

  struct Carved {
    std::uint64_t address = 0;
    bool has_credit = false;  // the server has all of it committed already
  };

  explicit WindowAllocator(const Window& window);

  /// The smallest hole that fits, lowest address first; nothing when no hole does. A carved range
  /// must be confirmed, or released when the server refused it.
  std::optional<Carved> carve(std::uint64_t size);

  /// The server holds memory for the range at `address` (or will, before anything posted later).
  void confirm(std::uint64_t address);

  /// False when no range starts at `address`.
  bool release(std::uint64_t address);

  std::uint64_t allocated_bytes() const { return allocated_bytes_; }

 private:
  struct Allocation {
    std::uint64_t size = 0;  // aligned
    bool confirmed = false;
  };

  void add_hole(std::uint64_t address, std::uint64_t size);
  bool is_committed(std::uint64_t address, std::uint64_t size) const;
  void count_edge_chunks(std::uint64_t address, std::uint64_t size, int change);
  void count_chunk(std::uint64_t chunk, int change);
  std::uint64_t chunk_of(std::uint64_t address) const {
    return (address - window_.base) / window_.granularity;
  }
  bool is_in_prefix(std::uint64_t chunk) const {
    return (chunk + 1) * window_.granularity <= window_.committed_bytes;
  }

  Window window_;
  std::map<std::uint64_t, std::uint64_t> holes_;                         // address to size
  std::set<std::pair<std::uint64_t, std::uint64_t>> holes_by_size_;      // {size, address}
  std::unordered_map<std::uint64_t, Allocation> allocations_;            // by address
  std::unordered_map<std::uint64_t, std::uint32_t> confirmed_in_chunk_;  // chunks beyond the prefix
  std::uint64_t allocated_bytes_ = 0;
};

}  // namespace remora::client_shim
