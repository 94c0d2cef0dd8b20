// SPDX-License-Identifier: Apache-2.0
// Reading and writing lanes of registers as a type, and the loops that handlers are made of.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "softgpu/exec/warp.h"

namespace remora::softgpu {

template <typename T>
using Word = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;

template <typename T>
inline T get(const Word<T>* lanes, std::uint32_t lane) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::bit_cast<T>(lanes[lane]);
  } else {
    return static_cast<T>(lanes[lane]);
  }
}

/// Narrow integers are extended by their sign.
template <typename T>
inline void put(Word<T>* lanes, std::uint32_t lane, T value) {
  if constexpr (std::is_floating_point_v<T>) {
    lanes[lane] = std::bit_cast<Word<T>>(value);
  } else if constexpr (std::is_signed_v<T>) {
    lanes[lane] = static_cast<Word<T>>(static_cast<std::make_signed_t<Word<T>>>(value));
  } else {
    lanes[lane] = value;
  }
}

/// All lanes of a full warp in a loop that the compiler can vectorise, else one by one.
template <typename F>
inline void for_lanes(std::uint32_t mask, F&& f) {
  if (mask == UINT32_MAX) {
    for (std::uint32_t lane = 0; lane < kWarpLanes; ++lane) f(lane);
  } else {
    for (; mask != 0; mask &= mask - 1) f(static_cast<std::uint32_t>(std::countr_zero(mask)));
  }
}

template <typename Op, typename R, typename A>
Flow unary(Warp& warp, const Instruction& i, std::uint32_t mask) {
  auto* d = warp.out<Word<R>>(i.d);
  const auto* a = warp.in<Word<A>>(i.a);
  for_lanes(mask, [&](std::uint32_t l) { put<R>(d, l, Op::apply(get<A>(a, l))); });
  return Flow::next;
}

template <typename Op, typename R, typename A, typename B>
Flow binary(Warp& warp, const Instruction& i, std::uint32_t mask) {
  auto* d = warp.out<Word<R>>(i.d);
  const auto* a = warp.in<Word<A>>(i.a);
  const auto* b = warp.in<Word<B>>(i.b);
  for_lanes(mask, [&](std::uint32_t l) { put<R>(d, l, Op::apply(get<A>(a, l), get<B>(b, l))); });
  return Flow::next;
}

template <typename Op, typename R, typename A, typename B, typename C>
Flow ternary(Warp& warp, const Instruction& i, std::uint32_t mask) {
  auto* d = warp.out<Word<R>>(i.d);
  const auto* a = warp.in<Word<A>>(i.a);
  const auto* b = warp.in<Word<B>>(i.b);
  const auto* c = warp.in<Word<C>>(i.c);
  for_lanes(mask, [&](std::uint32_t l) {
    put<R>(d, l, Op::apply(get<A>(a, l), get<B>(b, l), get<C>(c, l)));
  });
  return Flow::next;
}

}  // namespace remora::softgpu
