// SPDX-License-Identifier: Apache-2.0
// Loads, stores and atomics (PTX ISA, 9.7.9 and 9.7.13). Every lane's address is checked against the
// allocation it lies in. The host's memory order is at least as strong as any that PTX asks for on
// aligned loads and stores; atomics are sequentially consistent.
#include <algorithm>
#include <cmath>

#include "softgpu/exec/lanes.h"
#include "softgpu/exec/opcode.h"

namespace remora::softgpu {
namespace {

enum class Space { generic, global, shared, local, param };

template <Space kSpace>
inline std::byte* resolve(Warp& warp, std::uint64_t address, std::uint32_t size, bool write,
                          std::uint32_t lane, const Instruction& i) {
  if constexpr (kSpace == Space::global) return warp.global(address, size, write, lane, i);
  if constexpr (kSpace == Space::shared) return warp.shared(address, size, lane, i);
  if constexpr (kSpace == Space::local) return warp.local(address, size, lane, i);
  if constexpr (kSpace == Space::param) return warp.parameter(address, size, lane, i);
  return warp.generic(address, size, write, lane, i);
}

inline std::uint64_t address_of(Warp& warp, const Instruction& i, std::uint32_t lane) {
  const std::uint64_t base =
      i.wide_address ? warp.in<std::uint64_t>(i.a)[lane] : warp.in<std::uint32_t>(i.a)[lane];
  return base + i.immediate;
}

/// The address place is a; results go to d, d2, b and c.
template <Space kSpace, typename T, unsigned kVector>
Flow load(Warp& warp, const Instruction& i, std::uint32_t mask) {
  const std::uint32_t offsets[4] = {i.d, i.d2, i.b.offset, i.c.offset};
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(rest));
    const std::byte* from = resolve<kSpace>(warp, address_of(warp, i, lane), sizeof(T) * kVector,
                                            false, lane, i);
    if (from == nullptr) [[unlikely]] return Flow::fault;
    T values[kVector];
    std::memcpy(values, from, sizeof values);
    for (unsigned k = 0; k < kVector; ++k) put<T>(warp.out<Word<T>>(offsets[k]), lane, values[k]);
  }
  return Flow::next;
}

/// The address place is a; values are b, c, e and the register d.
template <Space kSpace, typename T, unsigned kVector>
Flow store(Warp& warp, const Instruction& i, std::uint32_t mask) {
  const Word<T>* sources[4] = {warp.in<Word<T>>(i.b), warp.in<Word<T>>(i.c), warp.in<Word<T>>(i.e),
                               warp.in<Word<T>>({i.d, false})};
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(rest));
    std::byte* to =
        resolve<kSpace>(warp, address_of(warp, i, lane), sizeof(T) * kVector, true, lane, i);
    if (to == nullptr) [[unlikely]] return Flow::fault;
    T values[kVector];
    for (unsigned k = 0; k < kVector; ++k) values[k] = get<T>(sources[k], lane);
    std::memcpy(to, values, sizeof values);
  }
  return Flow::next;
}

template <template <Space, typename, unsigned> class Access, Space kSpace, typename T>
Handler by_vector(unsigned vector) {
  switch (vector) {
    case 1: return Access<kSpace, T, 1>::run;
    case 2: return Access<kSpace, T, 2>::run;
    case 4: return Access<kSpace, T, 4>::run;
    default: return nullptr;
  }
}
template <template <Space, typename, unsigned> class Access, Space kSpace>
Handler by_type(ScalarType t, unsigned vector) {
  switch (t) {
    case ScalarType::b8:
    case ScalarType::u8: return by_vector<Access, kSpace, std::uint8_t>(vector);
    case ScalarType::s8: return by_vector<Access, kSpace, std::int8_t>(vector);
    case ScalarType::b16:
    case ScalarType::f16:
    case ScalarType::bf16:
    case ScalarType::u16: return by_vector<Access, kSpace, std::uint16_t>(vector);
    case ScalarType::s16: return by_vector<Access, kSpace, std::int16_t>(vector);
    case ScalarType::b32:
    case ScalarType::f32:
    case ScalarType::f16x2:
    case ScalarType::bf16x2:
    case ScalarType::s32:
    case ScalarType::u32: return by_vector<Access, kSpace, std::uint32_t>(vector);
    case ScalarType::b64:
    case ScalarType::f64:
    case ScalarType::s64:
    case ScalarType::u64: return by_vector<Access, kSpace, std::uint64_t>(vector);
    default: return nullptr;
  }
}
template <template <Space, typename, unsigned> class Access>
Handler by_space(std::string_view space, ScalarType t, unsigned vector) {
  if (space.empty()) return by_type<Access, Space::generic>(t, vector);
  if (space == "global" || space == "const") return by_type<Access, Space::global>(t, vector);
  if (space == "shared") return by_type<Access, Space::shared>(t, vector);
  if (space == "local") return by_type<Access, Space::local>(t, vector);
  if (space == "param") return by_type<Access, Space::param>(t, vector);
  return nullptr;
}
template <Space kSpace, typename T, unsigned kVector>
struct Load { static constexpr Handler run = load<kSpace, T, kVector>; };
template <Space kSpace, typename T, unsigned kVector>
struct Store { static constexpr Handler run = store<kSpace, T, kVector>; };

// --- Atomics -----------------------------------------------------------------------------------

/// Replaces *at by f(*at) in one step and returns what was there.
template <typename T, typename F>
T exchange_by(T* at, F&& f) {
  using Bits = Word<T>;
  auto* bits = reinterpret_cast<Bits*>(at);
  Bits old = __atomic_load_n(bits, __ATOMIC_RELAXED);
  while (true) {
    const T value = f(std::bit_cast<T>(old));
    if (__atomic_compare_exchange_n(bits, &old, std::bit_cast<Bits>(value), true, __ATOMIC_SEQ_CST,
                                    __ATOMIC_RELAXED)) {
      return std::bit_cast<T>(old);
    }
  }
}

struct AtomAdd {
  template <typename T>
  static T apply(T old, T b, T) {
    if constexpr (std::is_floating_point_v<T>) {
      return old + b;
    } else {
      return static_cast<T>(static_cast<Word<T>>(old) + static_cast<Word<T>>(b));
    }
  }
};
struct AtomExch { template <typename T> static T apply(T, T b, T) { return b; } };
struct AtomCas { template <typename T> static T apply(T old, T b, T c) { return old == b ? c : old; } };
struct AtomMin { template <typename T> static T apply(T old, T b, T) { return std::min(old, b); } };
struct AtomMax { template <typename T> static T apply(T old, T b, T) { return std::max(old, b); } };
struct AtomAnd { template <typename T> static T apply(T old, T b, T) { return old & b; } };
struct AtomOr { template <typename T> static T apply(T old, T b, T) { return old | b; } };
struct AtomXor { template <typename T> static T apply(T old, T b, T) { return old ^ b; } };
struct AtomInc { template <typename T> static T apply(T old, T b, T) { return old >= b ? 0 : old + 1; } };
struct AtomDec { template <typename T> static T apply(T old, T b, T) { return old == 0 || old > b ? b : old - 1; } };

/// d is the old value; a the address; b and c the operands.
template <typename Op, typename T, bool kShared>
Flow atomic(Warp& warp, const Instruction& i, std::uint32_t mask) {
  const auto* b = warp.in<Word<T>>(i.b);
  const auto* c = warp.in<Word<T>>(i.c);
  auto* d = warp.out<Word<T>>(i.d);
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(rest));
    std::byte* at = resolve<kShared ? Space::shared : Space::generic>(
        warp, address_of(warp, i, lane), sizeof(T), true, lane, i);
    if (at == nullptr) [[unlikely]] return Flow::fault;
    const T x = get<T>(b, lane), y = get<T>(c, lane);
    const T old = exchange_by(reinterpret_cast<T*>(at), [&](T was) { return Op::apply(was, x, y); });
    put<T>(d, lane, old);
  }
  return Flow::next;
}

template <typename Op, typename T>
Handler one(bool shared) {
  return shared ? atomic<Op, T, true> : atomic<Op, T, false>;
}
template <typename Op>
Handler any_integer(ScalarType t, bool shared) {
  switch (t) {
    case ScalarType::b32:
    case ScalarType::u32: return one<Op, std::uint32_t>(shared);
    case ScalarType::s32: return one<Op, std::int32_t>(shared);
    case ScalarType::b64:
    case ScalarType::u64: return one<Op, std::uint64_t>(shared);
    case ScalarType::s64: return one<Op, std::int64_t>(shared);
    default: return nullptr;
  }
}

}  // namespace

Handler load_handler(std::string_view space, ScalarType type, unsigned vector) {
  return by_space<Load>(space, type, vector);
}
Handler store_handler(std::string_view space, ScalarType type, unsigned vector) {
  return space == "param" || space == "const" ? nullptr : by_space<Store>(space, type, vector);
}

Handler atomic_handler(std::string_view op, ScalarType t, bool shared) {
  if (op == "add") {
    if (t == ScalarType::f32) return one<AtomAdd, float>(shared);
    if (t == ScalarType::f64) return one<AtomAdd, double>(shared);
    return any_integer<AtomAdd>(t, shared);
  }
  if (op == "exch") return any_integer<AtomExch>(t, shared);
  if (op == "cas") return any_integer<AtomCas>(t, shared);
  if (op == "min") return any_integer<AtomMin>(t, shared);
  if (op == "max") return any_integer<AtomMax>(t, shared);
  if (op == "and") return any_integer<AtomAnd>(t, shared);
  if (op == "or") return any_integer<AtomOr>(t, shared);
  if (op == "xor") return any_integer<AtomXor>(t, shared);
  if (op == "inc" && t == ScalarType::u32) return one<AtomInc, std::uint32_t>(shared);
  if (op == "dec" && t == ScalarType::u32) return one<AtomDec, std::uint32_t>(shared);
  return nullptr;
}

}  // namespace remora::softgpu
