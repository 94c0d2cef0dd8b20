// SPDX-License-Identifier: Apache-2.0
#include "softgpu/exec/warp.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace remora::softgpu {
namespace {

// Instructions that a group may run while others of its warp are ready, before they get a turn.
constexpr std::int64_t kGroupSlice = 20'000;
constexpr std::int64_t kTurnSlice = 2'000;  // of such a turn
constexpr std::int64_t kWarpSlice = 4'000;

std::uint32_t lanes_below(std::uint32_t count) {
  return count >= kWarpLanes ? UINT32_MAX : (1u << count) - 1;
}

}  // namespace

// --- Memory ------------------------------------------------------------------------------------

void RangeCache::refresh() {
  const std::uint64_t now = memory_.generation.load(std::memory_order_acquire);
  if (now == generation_) return;
  generation_ = now;
  ranges_ = {};
}

bool RangeCache::look_up(std::uint64_t address, std::uint32_t size, bool write) {
  const auto fits = [&](const MemoryRange& range) {
    return address >= range.begin && address < range.end && range.end - address >= size;
  };
  for (std::size_t i = 1; i < ranges_.size(); ++i) {
    if (!fits(ranges_[i])) continue;
    std::rotate(ranges_.begin(), ranges_.begin() + static_cast<std::ptrdiff_t>(i),
                ranges_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    return ranges_[0].writable || !write;
  }
  MemoryRange range;
  if (!memory_.find(address, range) || !fits(range)) return false;
  std::rotate(ranges_.begin(), ranges_.end() - 1, ranges_.end());
  ranges_[0] = range;
  return range.writable || !write;
}

Flow Warp::fault(Fault::Kind kind, std::uint32_t lane, const Instruction& at, std::string what) {
  const Dim3 block = block_.index();
  const Dim3 shape = block_.grid().shape.block;
  const std::uint32_t thread = index_ * kWarpLanes + lane;
  block_.set_fault(
      {kind, fmt::format("Kernel {}, block ({}, {}, {}), thread ({}, {}, {}), PTX line {}: {}.",
                         block_.program().name, block.x, block.y, block.z, thread % shape.x,
                         thread / shape.x % shape.y, thread / (shape.x * shape.y), at.line, what)});
  return Flow::fault;
}

std::byte* Warp::global(std::uint64_t address, std::uint32_t size, bool write, std::uint32_t lane,
                        const Instruction& at) {
  if (address & (size - 1)) [[unlikely]] {
    fault(Fault::Kind::misaligned_address, lane, at,
          fmt::format("the address {:#x} is not aligned to {} bytes", address, size));
    return nullptr;
  }
  if (!block_.ranges().covers(address, size, write)) [[unlikely]] {
    fault(Fault::Kind::illegal_address, lane, at,
          fmt::format("{} {} bytes at {:#x}, which is no allocated device memory",
                      write ? "writes" : "reads", size, address));
    return nullptr;
  }
  return reinterpret_cast<std::byte*>(address);
}

std::byte* Warp::shared(std::uint64_t offset, std::uint32_t size, std::uint32_t lane,
                        const Instruction& at) {
  auto& memory = block_.shared_memory();
  if (offset > memory.size() || memory.size() - offset < size) [[unlikely]] {
    fault(Fault::Kind::illegal_address, lane, at,
          fmt::format("accesses {} bytes at shared offset {:#x} of {}", size, offset, memory.size()));
    return nullptr;
  }
  if (offset & (size - 1)) [[unlikely]] {
    fault(Fault::Kind::misaligned_address, lane, at,
          fmt::format("the shared offset {:#x} is not aligned to {} bytes", offset, size));
    return nullptr;
  }
  return memory.data() + offset;
}

std::byte* Warp::local(std::uint64_t offset, std::uint32_t size, std::uint32_t lane,
                       const Instruction& at) {
  const std::uint32_t bytes = block_.program().resources.local_bytes;
  if (offset > bytes || bytes - offset < size) [[unlikely]] {
    fault(Fault::Kind::illegal_address, lane, at,
          fmt::format("accesses {} bytes at local offset {:#x} of {}", size, offset, bytes));
    return nullptr;
  }
  if (offset & (size - 1)) [[unlikely]] {
    fault(Fault::Kind::misaligned_address, lane, at,
          fmt::format("the local offset {:#x} is not aligned to {} bytes", offset, size));
    return nullptr;
  }
  return block_.local_memory(index_ * kWarpLanes + lane) + offset;
}

std::byte* Warp::parameter(std::uint64_t offset, std::uint32_t size, std::uint32_t lane,
                           const Instruction& at) {
  const auto& parameters = block_.grid().parameters;
  if (offset > parameters.size() || parameters.size() - offset < size) [[unlikely]] {
    fault(Fault::Kind::illegal_address, lane, at,
          fmt::format("reads {} bytes at parameter offset {:#x} of {}", size, offset,
                      parameters.size()));
    return nullptr;
  }
  return const_cast<std::byte*>(parameters.data()) + offset;
}

std::byte* Warp::generic(std::uint64_t address, std::uint32_t size, bool write, std::uint32_t lane,
                         const Instruction& at) {
  if (address < kSharedWindow) [[likely]] return global(address, size, write, lane, at);
  if (in_window(address, kSharedWindow)) return shared(address - kSharedWindow, size, lane, at);
  if (in_window(address, kLocalWindow)) return local(address - kLocalWindow, size, lane, at);
  if (in_window(address, kParamWindow) && !write) {
    return parameter(address - kParamWindow, size, lane, at);
  }
  return global(address, size, write, lane, at);
}

// --- Warp --------------------------------------------------------------------------------------

Warp::Warp(Block& block, std::uint32_t index, std::uint32_t lanes)
    : block_(block),
      index_(index),
      constants_(block.program().constants.data()),
      code_(block.program().code.data()),
      alive_(lanes_below(lanes)),
      mask_(alive_) {
  // Undefined registers hold zeros, so that a run can be repeated.
  const std::size_t bytes = block.program().register_bytes + 64;
  storage_ = std::make_unique<std::byte[]>(bytes);
  const auto address = reinterpret_cast<std::uintptr_t>(storage_.get());
  registers_ = storage_.get() + ((address + 63) / 64 * 64 - address);
  set_special_registers(lanes);
}

void Warp::set_special_registers(std::uint32_t /*lanes*/) {
  using Kind = SpecialRegister::Kind;
  const Dim3 block = block_.grid().shape.block, grid = block_.grid().shape.grid;
  const Dim3 at = block_.index();
  for (const SpecialRegister& special : block_.program().specials) {
    auto* values = reinterpret_cast<std::uint32_t*>(registers_ + special.offset);
    for (std::uint32_t lane = 0; lane < kWarpLanes; ++lane) {
      const std::uint32_t thread = index_ * kWarpLanes + lane;
      std::uint32_t value = 0;
      switch (special.kind) {
        case Kind::tid_x: value = thread % block.x; break;
        case Kind::tid_y: value = thread / block.x % block.y; break;
        case Kind::tid_z: value = thread / (block.x * block.y); break;
        case Kind::ntid_x: value = block.x; break;
        case Kind::ntid_y: value = block.y; break;
        case Kind::ntid_z: value = block.z; break;
        case Kind::ctaid_x: value = at.x; break;
        case Kind::ctaid_y: value = at.y; break;
        case Kind::ctaid_z: value = at.z; break;
        case Kind::nctaid_x: value = grid.x; break;
        case Kind::nctaid_y: value = grid.y; break;
        case Kind::nctaid_z: value = grid.z; break;
        case Kind::laneid: value = lane; break;
        case Kind::warpid: value = index_; break;
        case Kind::nwarpid: value = (block_.threads() + kWarpLanes - 1) / kWarpLanes; break;
        case Kind::smid: value = 0; break;
        case Kind::nsmid: value = 1; break;
        case Kind::gridid: value = static_cast<std::uint32_t>(block_.grid().id); break;
        case Kind::lanemask_eq: value = 1u << lane; break;
        case Kind::lanemask_lt: value = (1u << lane) - 1; break;
        case Kind::lanemask_le: value = ((1u << lane) - 1) | 1u << lane; break;
        case Kind::lanemask_gt: value = ~(((1u << lane) - 1) | 1u << lane); break;
        case Kind::lanemask_ge: value = ~((1u << lane) - 1); break;
        case Kind::dynamic_smem_size:
          value = block_.grid().shape.dynamic_shared_bytes;
          break;
        case Kind::total_smem_size:
          value = static_cast<std::uint32_t>(block_.shared_memory().size());
          break;
      }
      values[lane] = value;
    }
  }
}

/// Puts the running group among the others, waiting.
void Warp::park(Group::State state, std::uint32_t barrier) {
  if (mask_ != 0) groups_.push_back({state, pc_, mask_, barrier});
  mask_ = 0;
}

/// Joins ready groups that stand at the same instruction and takes the next one to run. False: none
/// is ready.
bool Warp::merge_and_pick() {
  if (mask_ != 0) groups_.push_back({Group::State::ready, pc_, mask_, 0});
  mask_ = 0;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    for (std::size_t j = groups_.size() - 1; j > i; --j) {
      const bool same = groups_[i].pc == groups_[j].pc &&
                        groups_[i].state != Group::State::barrier &&
                        groups_[j].state != Group::State::barrier;
      if (!same) continue;
      // A group that waited for lanes to join looks again.
      groups_[i].state = Group::State::ready;
      groups_[i].mask |= groups_[j].mask;
      groups_.erase(groups_.begin() + static_cast<std::ptrdiff_t>(j));
    }
  }
  std::size_t best = groups_.size(), ready = 0;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    if (groups_[i].state != Group::State::ready) continue;
    ++ready;
    if (best == groups_.size() || groups_[i].pc < groups_[best].pc) best = i;
  }
  if (ready == 0) return false;
  if (rotating_ && ready > 1) {
    // The lowest had its slice: another one, in turn.
    std::size_t turn = turn_ % ready;
    for (best = 0;; ++best) {
      if (groups_[best].state == Group::State::ready && turn-- == 0) break;
    }
  }
  pc_ = groups_[best].pc;
  mask_ = groups_[best].mask;
  groups_.erase(groups_.begin() + static_cast<std::ptrdiff_t>(best));
  limit_ = UINT32_MAX;
  for (const Group& group : groups_) {
    // A converging group waits to be joined, so meeting it matters too.
    if (group.state != Group::State::barrier && group.pc > pc_) limit_ = std::min(limit_, group.pc);
  }
  return true;
}

/// Whether all lanes that a .sync instruction names have come; exited lanes are not waited for.
bool Warp::converged(const Instruction& instruction) {
  if (force_converged_) return true;
  const std::uint32_t* members = in<std::uint32_t>(instruction.e);
  std::uint32_t named = 0;
  for (std::uint32_t rest = mask_; rest != 0; rest &= rest - 1) named |= members[std::countr_zero(rest)];
  return (named & alive_ & ~mask_) == 0;
}

/// All that is left waits for lanes that will not come to the same instruction (a __syncwarp() in
/// each branch of an if): they go on as they are.
bool Warp::release_stuck_convergence() {
  bool any = false;
  for (Group& group : groups_) {
    if (group.state != Group::State::converging) continue;
    group.state = Group::State::ready;
    any = true;
  }
  force_converged_ = any;
  return any;
}

Warp::State Warp::run(std::int64_t& budget) {
  const std::int64_t end = budget - kWarpSlice;
  if (alive_ == 0) return State::finished;
  if (!merge_and_pick()) {
    if (!release_stuck_convergence()) return State::waiting;
    merge_and_pick();
  }
  while (true) {
    const Instruction& instruction = code_[pc_];
    --budget;
    std::uint32_t mask = mask_;
    if (instruction.has_guard) {
      const std::uint32_t predicate = *in<std::uint32_t>({instruction.guard, false});
      mask &= instruction.guard_negated ? ~predicate : predicate;
    }
    Flow flow = Flow::next;
    if (mask != 0) {
      if (instruction.converge && !converged(instruction)) {
        park(Group::State::converging);
        if (!merge_and_pick()) {
          if (!release_stuck_convergence()) return State::waiting;
          merge_and_pick();
        }
        continue;
      }
      force_converged_ = false;
      flow = instruction.run(*this, instruction, mask);
    }
    if (flow == Flow::next) [[likely]] {
      ++pc_;
      if (pc_ < limit_ && --slice_ > 0 && budget > end) [[likely]] continue;
    } else if (flow == Flow::branch) {
      const std::uint32_t target = branch_target;
      const bool backward = target <= pc_;
      if (branch_mask != mask_) {
        groups_.push_back({Group::State::ready, target, branch_mask, 0});
        mask_ &= ~branch_mask;
        // Lanes that a brx.idx did not take come back to it.
        if ((mask & ~branch_mask) == 0) ++pc_;
      } else {
        pc_ = target;
        if (groups_.empty() && budget > end) continue;
        if (!backward && pc_ < limit_ && budget > end) continue;
      }
    } else if (flow == Flow::exit) {
      alive_ &= ~mask;
      mask_ &= ~mask;
      block_.threads_ended(static_cast<std::uint32_t>(std::popcount(mask)));
      if (alive_ == 0) return State::finished;
      ++pc_;
    } else if (flow == Flow::barrier) {
      // A guarded barrier: the other lanes go on.
      const std::uint32_t rest = mask_ & ~mask;
      groups_.push_back({Group::State::barrier, pc_, mask, barrier_id});
      mask_ = rest;
      ++pc_;
      // Where a count is given, a whole warp counts as 32 threads however many it has.
      const auto expected = static_cast<std::uint32_t>(instruction.immediate);
      const bool whole = expected != 0 && mask == alive_;
      block_.arrive(barrier_id,
                    whole ? kWarpLanes : static_cast<std::uint32_t>(std::popcount(mask)), expected,
                    barrier_predicates);
    } else if (flow == Flow::yield) {
      ++pc_;
      slice_ = 0;
    } else {
      return State::faulted;
    }
    if (slice_ <= 0) {
      rotating_ = !rotating_;
      if (rotating_) ++turn_;
      slice_ = rotating_ ? kTurnSlice : kGroupSlice;
    }
    if (budget <= end || flow == Flow::yield) {
      park(Group::State::ready);
      return State::runnable;
    }
    if (!merge_and_pick()) {
      if (!release_stuck_convergence()) return State::waiting;
      merge_and_pick();
    }
  }
}

void Warp::release(std::uint32_t barrier, std::uint32_t and_or_count[3]) {
  for (Group& group : groups_) {
    if (group.state != Group::State::barrier || group.barrier != barrier) continue;
    const Instruction& instruction = code_[group.pc];
    // bar.red: small is 1 (and), 2 (or), 3 (popc).
    if (instruction.small == 1 || instruction.small == 2) {
      auto& predicate = *out<std::uint32_t>(instruction.d);
      const bool value = and_or_count[instruction.small - 1] != 0;
      predicate = value ? predicate | group.mask : predicate & ~group.mask;
    } else if (instruction.small == 3) {
      for (std::uint32_t rest = group.mask; rest != 0; rest &= rest - 1) {
        out<std::uint32_t>(instruction.d)[std::countr_zero(rest)] = and_or_count[2];
      }
    }
    group.state = Group::State::ready;
    ++group.pc;
  }
}

// --- Block -------------------------------------------------------------------------------------

Block::Block(const GridContext& grid, std::uint64_t linear_index)
    : grid_(grid), program_(grid.kernel->program()), ranges_(*grid.memory) {
  const Dim3 size = grid.shape.grid, block = grid.shape.block;
  index_ = {static_cast<std::uint32_t>(linear_index % size.x),
            static_cast<std::uint32_t>(linear_index / size.x % size.y),
            static_cast<std::uint32_t>(linear_index / size.x / size.y)};
  threads_ = living_ = block.x * block.y * block.z;
  shared_.resize(program_.dynamic_shared_offset + grid.shape.dynamic_shared_bytes);
  if (program_.resources.local_bytes != 0) {
    local_ = std::make_unique<std::byte[]>(std::size_t{threads_} * program_.resources.local_bytes);
  }
  const std::uint32_t warps = (threads_ + kWarpLanes - 1) / kWarpLanes;
  warps_.reserve(warps);
  for (std::uint32_t i = 0; i < warps; ++i) {
    warps_.emplace_back(*this, i, std::min(kWarpLanes, threads_ - i * kWarpLanes));
  }
}

Block::State Block::run(std::int64_t budget) {
  ranges_.refresh();
  std::size_t idle = 0;  // warps in a row that could do nothing
  while (living_ != 0 && budget > 0) {
    Warp& warp = warps_[next_warp_];
    next_warp_ = (next_warp_ + 1) % warps_.size();
    const std::int64_t before = budget;
    const Warp::State state = warp.run(budget);
    if (state == Warp::State::faulted) return State::faulted;
    const bool worked = budget != before;
    idle = worked ? 0 : idle + 1;
    if (idle > warps_.size()) {
      set_fault({Fault::Kind::internal,
                 fmt::format("Kernel {}, block ({}, {}, {}): all threads wait at barriers that "
                             "cannot open.",
                             program_.name, index_.x, index_.y, index_.z)});
      return State::faulted;
    }
  }
  return living_ == 0 ? State::finished : State::runnable;
}

void Block::arrive(std::uint32_t barrier, std::uint32_t count, std::uint32_t expected,
                   std::uint32_t predicates_true) {
  Barrier& at = barriers_[barrier];
  at.arrived += count;
  at.expected = expected;
  at.predicates_true += predicates_true;
  open_if_complete(barrier);
}

void Block::open_if_complete(std::uint32_t barrier) {
  Barrier& at = barriers_[barrier];
  const std::uint32_t expected = at.expected != 0 ? at.expected : living_;
  if (at.arrived == 0 || at.arrived < expected) return;
  std::uint32_t results[3] = {at.predicates_true == at.arrived, at.predicates_true != 0,
                              at.predicates_true};
  at = {};
  for (Warp& warp : warps_) warp.release(barrier, results);
}

void Block::threads_ended(std::uint32_t count) {
  living_ -= count;
  // Ended threads are not waited for.
  for (std::uint32_t i = 0; i < barriers_.size(); ++i) {
    if (barriers_[i].expected == 0) open_if_complete(i);
  }
}

}  // namespace remora::softgpu
