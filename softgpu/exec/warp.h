// SPDX-License-Identifier: Apache-2.0
// A block of threads while it runs: its warps, shared memory and barriers. A block is run by one
// worker at a time, so nothing in it needs a lock; global memory is shared with the whole process,
// and atomics on it are the host's.
//
// Divergence: the lanes of a warp form groups of equal program counter. The group with the lowest
// one runs first, which brings lanes together again where their paths join; a group that has used
// its slice gives way to the others, so that lanes may wait for one another.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "softgpu/exec/access.h"
#include "softgpu/exec/engine.h"
#include "softgpu/exec/program.h"

namespace remora::softgpu {

class Block;

/// What all blocks of one launch share.
struct GridContext {
  std::shared_ptr<const Kernel> kernel;
  LaunchShape shape;
  std::vector<std::byte> parameters;
  const MemoryMap* memory = nullptr;
  LaunchHooks hooks;
  std::uint64_t id = 0;
};

/// The allocations that were touched last; one per block, so it needs no lock.
class RangeCache {
 public:
  explicit RangeCache(const MemoryMap& memory) : memory_(memory) {}
  /// Whether [address, address + size) lies in one allocation (that may be written).
  bool covers(std::uint64_t address, std::uint32_t size, bool write) {
    const MemoryRange& hot = ranges_[0];
    if (address - hot.begin < hot.end - hot.begin && hot.end - address >= size &&
        (hot.writable || !write)) [[likely]] {
      return true;
    }
    return look_up(address, size, write);
  }
  /// Drops everything when the map has changed since.
  void refresh();

 private:
  bool look_up(std::uint64_t address, std::uint32_t size, bool write);
  const MemoryMap& memory_;
  std::array<MemoryRange, 6> ranges_{};
  std::uint64_t generation_ = 0;
};

class Warp {
 public:
  Warp(Block& block, std::uint32_t index, std::uint32_t lanes);

  enum class State { runnable, waiting, finished, faulted };
  /// Runs for about `budget` instructions.
  State run(std::int64_t& budget);
  /// Lanes that wait at `barrier` go on; `result` goes to those that asked for a reduction.
  void release(std::uint32_t barrier, std::uint32_t and_or_count[3]);

  template <typename T>
  const T* in(const Place& place) const {
    return reinterpret_cast<const T*>((place.constant ? constants_ : registers_) + place.offset);
  }
  template <typename T>
  T* out(std::uint32_t offset) {
    return reinterpret_cast<T*>(registers_ + offset);
  }

  Block& block() { return block_; }
  std::uint32_t index() const { return index_; }
  std::uint32_t alive() const { return alive_; }
  std::uint32_t pc() const { return pc_; }

  Flow fault(Fault::Kind kind, std::uint32_t lane, const Instruction& at, std::string what);

  /// The byte that a generic address means, or null with a fault noted. `size` <= 16.
  std::byte* generic(std::uint64_t address, std::uint32_t size, bool write, std::uint32_t lane,
                     const Instruction& at);
  std::byte* shared(std::uint64_t offset, std::uint32_t size, std::uint32_t lane,
                    const Instruction& at);
  std::byte* local(std::uint64_t offset, std::uint32_t size, std::uint32_t lane,
                   const Instruction& at);
  std::byte* parameter(std::uint64_t offset, std::uint32_t size, std::uint32_t lane,
                       const Instruction& at);
  std::byte* global(std::uint64_t address, std::uint32_t size, bool write, std::uint32_t lane,
                    const Instruction& at);

  // Set by a handler before it returns Flow::barrier or Flow::branch.
  std::uint32_t barrier_id = 0;
  std::uint32_t barrier_predicates = 0;  // lanes whose predicate is true, for bar.red
  std::uint32_t branch_target = 0;
  std::uint32_t branch_mask = 0;  // the lanes that go there

 private:
  struct Group {
    enum class State : std::uint8_t { ready, barrier, converging } state = State::ready;
    std::uint32_t pc = 0;
    std::uint32_t mask = 0;
    std::uint32_t barrier = 0;
  };

  bool merge_and_pick();
  void park(Group::State state, std::uint32_t barrier = 0);
  bool converged(const Instruction& instruction);
  bool release_stuck_convergence();
  void set_special_registers(std::uint32_t lanes);

  Block& block_;
  const std::uint32_t index_;
  std::byte* registers_;
  const std::byte* constants_;
  const Instruction* code_;
  std::unique_ptr<std::byte[]> storage_;
  std::uint32_t alive_;

  // The group that runs, and the others.
  std::uint32_t pc_ = 0;
  std::uint32_t mask_ = 0;
  std::vector<Group> groups_;
  std::uint32_t limit_ = UINT32_MAX;   // the lowest pc of another ready group
  bool force_converged_ = false;       // lanes it waits for will not come here
  std::int64_t slice_ = 20'000;        // instructions until the other groups get a turn
  bool rotating_ = false;              // a turn is going on
  std::uint32_t turn_ = 0;
};

class Block {
 public:
  Block(const GridContext& grid, std::uint64_t linear_index);

  enum class State { runnable, finished, faulted };
  State run(std::int64_t budget);
  const Fault& fault() const { return fault_; }

  // For warps.
  const GridContext& grid() const { return grid_; }
  const Program& program() const { return program_; }
  Dim3 index() const { return index_; }
  std::uint32_t threads() const { return threads_; }
  std::vector<std::byte>& shared_memory() { return shared_; }
  std::byte* local_memory(std::uint32_t thread) {
    return local_.get() + std::size_t{thread} * program_.resources.local_bytes;
  }
  RangeCache& ranges() { return ranges_; }
  void set_fault(Fault fault) {
    if (fault_.kind == Fault::Kind::none) fault_ = std::move(fault);
  }
  /// `count` threads reach a barrier that waits for `expected` (0: all that live).
  void arrive(std::uint32_t barrier, std::uint32_t count, std::uint32_t expected,
              std::uint32_t predicates_true);
  void threads_ended(std::uint32_t count);

 private:
  struct Barrier {
    std::uint32_t arrived = 0;
    std::uint32_t expected = 0;
    std::uint32_t predicates_true = 0;
  };
  void open_if_complete(std::uint32_t barrier);

  const GridContext& grid_;
  const Program& program_;
  Dim3 index_;
  std::uint32_t threads_;
  std::uint32_t living_;
  std::vector<std::byte> shared_;
  std::unique_ptr<std::byte[]> local_;
  RangeCache ranges_;
  std::vector<Warp> warps_;
  std::array<Barrier, 16> barriers_{};
  std::size_t next_warp_ = 0;
  Fault fault_;
};

}  // namespace remora::softgpu
