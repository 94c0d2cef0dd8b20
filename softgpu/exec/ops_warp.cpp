// SPDX-License-Identifier: Apache-2.0
// What lanes do together (PTX ISA, 9.7.9.6 shfl, 9.7.13 vote, match, redux, elect), control flow,
// and moves.
#include <sched.h>

#include <algorithm>

#include "base/clock.h"
#include "softgpu/exec/lanes.h"
#include "softgpu/exec/opcode.h"

namespace remora::softgpu {
namespace {

void set_predicate(Warp& warp, std::uint32_t offset, std::uint32_t mask, std::uint32_t value) {
  auto& d = *warp.out<std::uint32_t>(offset);
  d = (d & ~mask) | (value & mask);
}

enum class Shuffle { up, down, butterfly, index };

/// d|d2 = shfl a, b, c; small: 1 when there is a d2.
template <Shuffle kMode>
Flow shuffle(Warp& warp, const Instruction& i, std::uint32_t mask) {
  std::uint32_t source[kWarpLanes];
  std::memcpy(source, warp.in<std::uint32_t>(i.a), sizeof source);
  const auto* b = warp.in<std::uint32_t>(i.b);
  const auto* c = warp.in<std::uint32_t>(i.c);
  auto* d = warp.out<std::uint32_t>(i.d);
  std::uint32_t in_range = 0;
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(rest));
    const std::uint32_t by = b[lane] & 31, clamp = c[lane] & 31, segment = c[lane] >> 8 & 31;
    const auto greatest = static_cast<std::int32_t>((lane & segment) | (clamp & ~segment));
    const auto least = static_cast<std::int32_t>(lane & segment);
    const auto self = static_cast<std::int32_t>(lane);
    std::int32_t from;
    bool valid;
    switch (kMode) {
      case Shuffle::up:
        from = self - static_cast<std::int32_t>(by);
        valid = from >= greatest;
        break;
      case Shuffle::down:
        from = self + static_cast<std::int32_t>(by);
        valid = from <= greatest;
        break;
      case Shuffle::butterfly:
        from = self ^ static_cast<std::int32_t>(by);
        valid = from <= greatest;
        break;
      case Shuffle::index:
        from = least | static_cast<std::int32_t>(by & ~segment);
        valid = from <= greatest;
        break;
    }
    if (valid) in_range |= 1u << lane;
    d[lane] = source[valid ? from & 31 : self];
  }
  if (i.small & 1) set_predicate(warp, i.d2, mask, in_range);
  return Flow::next;
}

enum class Vote { all, any, uniform, ballot };

/// a is a predicate, small: 1 when it is negated. d: a predicate, or a 32-bit register for ballot.
template <Vote kMode>
Flow vote(Warp& warp, const Instruction& i, std::uint32_t mask) {
  std::uint32_t value = *warp.in<std::uint32_t>(i.a);
  if (i.small & 1) value = ~value;
  value &= mask;
  if constexpr (kMode == Vote::ballot) {
    auto* d = warp.out<std::uint32_t>(i.d);
    for_lanes(mask, [&](std::uint32_t l) { d[l] = value; });
  } else {
    bool yes = false;
    if (kMode == Vote::all) yes = value == mask;
    if (kMode == Vote::any) yes = value != 0;
    if (kMode == Vote::uniform) yes = value == mask || value == 0;
    set_predicate(warp, i.d, mask, yes ? UINT32_MAX : 0);
  }
  return Flow::next;
}

template <typename T, bool kAll>
Flow match(Warp& warp, const Instruction& i, std::uint32_t mask) {
  T values[kWarpLanes];
  std::memcpy(values, warp.in<T>(i.a), sizeof values);
  auto* d = warp.out<std::uint32_t>(i.d);
  bool all_same = true;
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(rest));
    std::uint32_t same = 0;
    for (std::uint32_t l = 0; l < kWarpLanes; ++l) {
      if ((mask >> l & 1) && values[l] == values[lane]) same |= 1u << l;
    }
    all_same &= same == mask;
    d[lane] = same;
  }
  if constexpr (kAll) {
    for_lanes(mask, [&](std::uint32_t l) { d[l] = all_same ? mask : 0; });
    if (i.small & 1) set_predicate(warp, i.d2, mask, all_same ? UINT32_MAX : 0);
  }
  return Flow::next;
}

template <typename T, typename F>
Flow reduce(Warp& warp, const Instruction& i, std::uint32_t mask, F&& f) {
  const auto* a = warp.in<std::uint32_t>(i.a);
  auto value = static_cast<T>(a[std::countr_zero(mask)]);
  for (std::uint32_t rest = mask & (mask - 1); rest != 0; rest &= rest - 1) {
    value = f(value, static_cast<T>(a[std::countr_zero(rest)]));
  }
  auto* d = warp.out<std::uint32_t>(i.d);
  for_lanes(mask, [&](std::uint32_t l) { d[l] = static_cast<std::uint32_t>(value); });
  return Flow::next;
}
using U = std::uint32_t;
using I = std::int32_t;
Flow redux_add(Warp& w, const Instruction& i, U m) { return reduce<U>(w, i, m, [](U a, U b) { return a + b; }); }
Flow redux_and(Warp& w, const Instruction& i, U m) { return reduce<U>(w, i, m, [](U a, U b) { return a & b; }); }
Flow redux_or(Warp& w, const Instruction& i, U m) { return reduce<U>(w, i, m, [](U a, U b) { return a | b; }); }
Flow redux_xor(Warp& w, const Instruction& i, U m) { return reduce<U>(w, i, m, [](U a, U b) { return a ^ b; }); }
Flow redux_min_u(Warp& w, const Instruction& i, U m) { return reduce<U>(w, i, m, [](U a, U b) { return std::min(a, b); }); }
Flow redux_max_u(Warp& w, const Instruction& i, U m) { return reduce<U>(w, i, m, [](U a, U b) { return std::max(a, b); }); }
Flow redux_min_s(Warp& w, const Instruction& i, U m) { return reduce<I>(w, i, m, [](I a, I b) { return std::min(a, b); }); }
Flow redux_max_s(Warp& w, const Instruction& i, U m) { return reduce<I>(w, i, m, [](I a, I b) { return std::max(a, b); }); }

Flow elect(Warp& warp, const Instruction& i, std::uint32_t mask) {
  const auto leader = static_cast<std::uint32_t>(std::countr_zero(mask));
  auto* d = warp.out<std::uint32_t>(i.d);
  for_lanes(mask, [&](std::uint32_t l) { d[l] = leader; });
  set_predicate(warp, i.d2, mask, 1u << leader);
  return Flow::next;
}

Flow active_mask(Warp& warp, const Instruction& i, std::uint32_t mask) {
  auto* d = warp.out<std::uint32_t>(i.d);
  for_lanes(mask, [&](std::uint32_t l) { d[l] = mask; });
  return Flow::next;
}

// --- Control -----------------------------------------------------------------------------------

Flow branch(Warp& warp, const Instruction& i, std::uint32_t mask) {
  warp.branch_target = i.target;
  warp.branch_mask = mask;
  return Flow::branch;
}
/// immediate: which of Program::branch_tables; a: the index. Lanes with another target than the
/// first come here again.
Flow indexed_branch(Warp& warp, const Instruction& i, std::uint32_t mask) {
  const auto& table = warp.block().program().branch_tables[i.immediate];
  const auto* index = warp.in<std::uint32_t>(i.a);
  const auto first = static_cast<std::uint32_t>(std::countr_zero(mask));
  if (index[first] >= table.size()) {
    return warp.fault(Fault::Kind::illegal_instruction, first, i, "brx.idx beyond its targets");
  }
  warp.branch_target = table[index[first]];
  warp.branch_mask = 0;
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(rest));
    if (index[lane] == index[first]) warp.branch_mask |= 1u << lane;
  }
  return Flow::branch;
}
Flow exit_lanes(Warp&, const Instruction&, std::uint32_t) { return Flow::exit; }

bool take_barrier(Warp& warp, const Instruction& i, std::uint32_t mask) {
  const std::uint32_t id = warp.in<std::uint32_t>(i.a)[std::countr_zero(mask)];
  if (id >= 16) return false;
  warp.barrier_id = id;
  return true;
}
/// a: the barrier; immediate: how many threads; of bar.red b is the predicate, small its kind (1 and,
/// 2 or, 3 popc), target: 1 when it is negated.
Flow barrier(Warp& warp, const Instruction& i, std::uint32_t mask) {
  if (!take_barrier(warp, i, mask)) {
    return warp.fault(Fault::Kind::illegal_instruction, 0, i, "there is no such barrier");
  }
  warp.barrier_predicates = 0;
  if (i.small != 0) {
    std::uint32_t predicate = *warp.in<std::uint32_t>(i.b);
    if (i.target != 0) predicate = ~predicate;
    warp.barrier_predicates = static_cast<std::uint32_t>(std::popcount(predicate & mask));
  }
  return Flow::barrier;
}
Flow barrier_arrive(Warp& warp, const Instruction& i, std::uint32_t mask) {
  if (!take_barrier(warp, i, mask)) {
    return warp.fault(Fault::Kind::illegal_instruction, 0, i, "there is no such barrier");
  }
  const bool whole = mask == warp.alive();
  warp.block().arrive(warp.barrier_id,
                      whole ? kWarpLanes : static_cast<std::uint32_t>(std::popcount(mask)),
                      static_cast<std::uint32_t>(i.immediate), 0);
  return Flow::next;
}
Flow nothing(Warp&, const Instruction&, std::uint32_t) { return Flow::next; }
Flow fence(Warp&, const Instruction&, std::uint32_t) {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  return Flow::next;
}
Flow trap(Warp& warp, const Instruction& i, std::uint32_t mask) {
  return warp.fault(Fault::Kind::trapped, static_cast<std::uint32_t>(std::countr_zero(mask)), i,
                    "trap");
}
Flow yield(Warp&, const Instruction&, std::uint32_t) { return Flow::yield; }

/// Nanoseconds stand in for clock cycles.
template <typename T>
Flow clock(Warp& warp, const Instruction& i, std::uint32_t mask) {
  auto* d = warp.out<T>(i.d);
  const auto now = static_cast<T>(now_ns());
  for_lanes(mask, [&](std::uint32_t l) { d[l] = now; });
  return Flow::next;
}

// --- Moves -------------------------------------------------------------------------------------

template <typename From, typename To>
Flow move(Warp& warp, const Instruction& i, std::uint32_t mask) {
  auto* d = warp.out<Word<To>>(i.d);
  const auto* a = warp.in<Word<From>>(i.a);
  for_lanes(mask, [&](std::uint32_t l) { put<To>(d, l, static_cast<To>(get<From>(a, l))); });
  return Flow::next;
}

enum class Logic { copy, and_, or_, xor_, not_ };
/// Predicates; small: bit 0 a negated, bit 1 b negated.
template <Logic kOp>
Flow logic(Warp& warp, const Instruction& i, std::uint32_t mask) {
  std::uint32_t a = *warp.in<std::uint32_t>(i.a);
  if (i.small & 1) a = ~a;
  std::uint32_t b = 0;
  if constexpr (kOp == Logic::and_ || kOp == Logic::or_ || kOp == Logic::xor_) {
    b = *warp.in<std::uint32_t>(i.b);
    if (i.small & 2) b = ~b;
  }
  std::uint32_t r = a;
  if (kOp == Logic::and_) r = a & b;
  if (kOp == Logic::or_) r = a | b;
  if (kOp == Logic::xor_) r = a ^ b;
  if (kOp == Logic::not_) r = ~a;
  set_predicate(warp, i.d, mask, r);
  return Flow::next;
}

/// selp d, a, b, c: c is a predicate; small: 1 when negated.
template <typename T>
Flow select(Warp& warp, const Instruction& i, std::uint32_t mask) {
  auto* d = warp.out<T>(i.d);
  const auto* a = warp.in<T>(i.a);
  const auto* b = warp.in<T>(i.b);
  std::uint32_t c = *warp.in<std::uint32_t>(i.c);
  if (i.small & 1) c = ~c;
  for_lanes(mask, [&](std::uint32_t l) { d[l] = c >> l & 1 ? a[l] : b[l]; });
  return Flow::next;
}
/// slct d, a, b, c: a when c >= 0.
template <typename T, typename C>
Flow select_by_sign(Warp& warp, const Instruction& i, std::uint32_t mask) {
  auto* d = warp.out<T>(i.d);
  const auto* a = warp.in<T>(i.a);
  const auto* b = warp.in<T>(i.b);
  const auto* c = warp.in<std::uint32_t>(i.c);
  for_lanes(mask, [&](std::uint32_t l) { d[l] = get<C>(c, l) >= 0 ? a[l] : b[l]; });
  return Flow::next;
}

/// mov.b32 d, {a, b, …}: parts are a, b, c, e from the lowest bits on.
template <typename Part, typename To, unsigned kParts>
Flow pack(Warp& warp, const Instruction& i, std::uint32_t mask) {
  const Word<Part>* parts[4] = {warp.in<Word<Part>>(i.a), warp.in<Word<Part>>(i.b),
                                warp.in<Word<Part>>(i.c), warp.in<Word<Part>>(i.e)};
  auto* d = warp.out<Word<To>>(i.d);
  for_lanes(mask, [&](std::uint32_t l) {
    To value = 0;
    for (unsigned k = 0; k < kParts; ++k) {
      value = static_cast<To>(value | static_cast<To>(get<Part>(parts[k], l)) << (k * sizeof(Part) * 8));
    }
    put<To>(d, l, value);
  });
  return Flow::next;
}
/// d = part number `small` of a.
template <typename Part, typename From>
Flow unpack(Warp& warp, const Instruction& i, std::uint32_t mask) {
  auto* d = warp.out<Word<Part>>(i.d);
  const auto* a = warp.in<Word<From>>(i.a);
  for_lanes(mask, [&](std::uint32_t l) {
    put<Part>(d, l, static_cast<Part>(get<From>(a, l) >> (i.small * sizeof(Part) * 8)));
  });
  return Flow::next;
}

/// isspacep: immediate is the window; 0 asks for global.
Flow is_space(Warp& warp, const Instruction& i, std::uint32_t mask) {
  const auto* a = warp.in<std::uint64_t>(i.a);
  std::uint32_t result = 0;
  for_lanes(mask, [&](std::uint32_t l) {
    const bool yes = i.immediate != 0 ? in_window(a[l], i.immediate) : a[l] < kSharedWindow;
    if (yes) result |= 1u << l;
  });
  set_predicate(warp, i.d, mask, result);
  return Flow::next;
}

}  // namespace

Handler shuffle_handler(std::string_view mode) {
  if (mode == "up") return shuffle<Shuffle::up>;
  if (mode == "down") return shuffle<Shuffle::down>;
  if (mode == "bfly") return shuffle<Shuffle::butterfly>;
  if (mode == "idx") return shuffle<Shuffle::index>;
  return nullptr;
}
Handler vote_handler(std::string_view mode) {
  if (mode == "all") return vote<Vote::all>;
  if (mode == "any") return vote<Vote::any>;
  if (mode == "uni") return vote<Vote::uniform>;
  if (mode == "ballot") return vote<Vote::ballot>;
  return nullptr;
}
Handler match_handler(std::string_view mode, ScalarType type) {
  const bool wide = size_bytes(type) == 8;
  if (mode == "any") return wide ? match<std::uint64_t, false> : match<std::uint32_t, false>;
  if (mode == "all") return wide ? match<std::uint64_t, true> : match<std::uint32_t, true>;
  return nullptr;
}
Handler redux_handler(std::string_view operation, ScalarType type) {
  if (size_bytes(type) != 4 || is_float(type)) return nullptr;
  if (operation == "add") return redux_add;
  if (operation == "and") return redux_and;
  if (operation == "or") return redux_or;
  if (operation == "xor") return redux_xor;
  if (operation == "min") return is_signed(type) ? redux_min_s : redux_min_u;
  if (operation == "max") return is_signed(type) ? redux_max_s : redux_max_u;
  return nullptr;
}
Handler elect_handler() { return elect; }
Handler active_mask_handler() { return active_mask; }
Handler branch_handler() { return branch; }
Handler indexed_branch_handler() { return indexed_branch; }
Handler exit_handler() { return exit_lanes; }
Handler barrier_handler() { return barrier; }
Handler barrier_arrive_handler() { return barrier_arrive; }
Handler nothing_handler() { return nothing; }
Handler fence_handler() { return fence; }
Handler trap_handler() { return trap; }
Handler yield_handler() { return yield; }
Handler clock_handler(bool wide) {
  return wide ? clock<std::uint64_t> : clock<std::uint32_t>;
}

Handler move_handler(unsigned from, unsigned to, bool sign_extend) {
  if (from <= 4 && to <= 4) return move<U, U>;
  if (from == 8 && to == 8) return move<std::uint64_t, std::uint64_t>;
  if (from == 8) return move<std::uint64_t, U>;
  return sign_extend ? move<I, std::int64_t> : move<U, std::uint64_t>;
}
Handler predicate_handler(std::string_view operation) {
  if (operation == "mov") return logic<Logic::copy>;
  if (operation == "and") return logic<Logic::and_>;
  if (operation == "or") return logic<Logic::or_>;
  if (operation == "xor") return logic<Logic::xor_>;
  if (operation == "not") return logic<Logic::not_>;
  return nullptr;
}
Handler select_handler(unsigned bytes, bool by_sign_f32, bool by_sign_s32) {
  if (by_sign_f32) {
    return bytes == 8 ? select_by_sign<std::uint64_t, float> : select_by_sign<U, float>;
  }
  if (by_sign_s32) return bytes == 8 ? select_by_sign<std::uint64_t, I> : select_by_sign<U, I>;
  return bytes == 8 ? select<std::uint64_t> : select<U>;
}
Handler pack_handler(unsigned part_bytes, unsigned parts) {
  if (part_bytes == 1 && parts == 2) return pack<std::uint8_t, std::uint16_t, 2>;
  if (part_bytes == 1 && parts == 4) return pack<std::uint8_t, U, 4>;
  if (part_bytes == 2 && parts == 2) return pack<std::uint16_t, U, 2>;
  if (part_bytes == 2 && parts == 4) return pack<std::uint16_t, std::uint64_t, 4>;
  if (part_bytes == 4 && parts == 2) return pack<U, std::uint64_t, 2>;
  return nullptr;
}
Handler unpack_handler(unsigned part_bytes, unsigned whole_bytes) {
  if (part_bytes == 1) return unpack<std::uint8_t, U>;
  if (part_bytes == 2) return whole_bytes == 8 ? unpack<std::uint16_t, std::uint64_t> : unpack<std::uint16_t, U>;
  if (part_bytes == 4) return unpack<U, std::uint64_t>;
  return nullptr;
}
Handler is_space_handler() { return is_space; }

}  // namespace remora::softgpu
