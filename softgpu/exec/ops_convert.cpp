// SPDX-License-Identifier: Apache-2.0
// Conversions (PTX ISA, 9.7.9, cvt) and comparisons (9.7.4 to 9.7.6). A conversion reads the value
// exactly (integers as 128-bit or, floats as double), rounds once, and saturates.
#include <cfenv>
#include <cmath>
#include <limits>

#include "softgpu/exec/half.h"
#include "softgpu/exec/lanes.h"
#include "softgpu/exec/opcode.h"

namespace remora::softgpu {
namespace {

struct Half {};
struct Bfloat {};

/// `small`: 1 .ftz, 2 .sat, 4 .relu, bits 3 and 4 the rounding.
constexpr std::uint8_t kFtz = 1, kSat = 2, kRelu = 4, kRoundShift = 3;
Rounding rounding_of(std::uint8_t small) { return static_cast<Rounding>(small >> kRoundShift & 3); }

double round_to_integer(double value, Rounding rounding) {
  switch (rounding) {
    case Rounding::zero: return std::trunc(value);
    case Rounding::down: return std::floor(value);
    case Rounding::up: return std::ceil(value);
    case Rounding::nearest: break;
  }
  return std::nearbyint(value);
}

float flush(float value) {
  return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0f, value) : value;
}

int host_mode(Rounding rounding) {
  switch (rounding) {
    case Rounding::zero: return FE_TOWARDZERO;
    case Rounding::down: return FE_DOWNWARD;
    case Rounding::up: return FE_UPWARD;
    case Rounding::nearest: break;
  }
  return FE_TONEAREST;
}

/// double or integer to float or double under a rounding mode; volatile keeps the conversion between
/// the two calls.
template <typename R, typename A>
R convert_rounded(A value, Rounding rounding) {
  if (rounding == Rounding::nearest) return static_cast<R>(value);
  std::fesetround(host_mode(rounding));
  volatile A given = value;
  volatile R result = static_cast<R>(given);
  std::fesetround(FE_TONEAREST);
  return result;
}

template <typename R>
R float_to_integer(double value, Rounding rounding) {
  if (std::isnan(value)) {
    // As the hardware does it: 0 for 32 bits and less, the top bit for 64.
    return sizeof(R) == 8 ? static_cast<R>(std::uint64_t{1} << 63) : R{0};
  }
  const double rounded = round_to_integer(value, rounding);
  constexpr double kLeast = static_cast<double>(std::numeric_limits<R>::min());
  // One past the greatest: a power of two, exact.
  const double past = std::ldexp(1.0, std::numeric_limits<R>::digits);
  if (rounded < kLeast) return std::numeric_limits<R>::min();
  if (rounded >= past) return std::numeric_limits<R>::max();
  return static_cast<R>(rounded);
}

template <typename R, typename A>
R integer_to_integer(A value, bool saturate) {
  if (saturate) {
    const auto wide = static_cast<__int128>(value);
    if (wide < static_cast<__int128>(std::numeric_limits<R>::min())) {
      return std::numeric_limits<R>::min();
    }
    if (wide > static_cast<__int128>(std::numeric_limits<R>::max())) {
      return std::numeric_limits<R>::max();
    }
  }
  return static_cast<R>(value);
}

template <typename R>
R finish_float(R value, std::uint8_t small) {
  if (std::isnan(value)) {
    if (small & (kSat | kRelu) & kSat) return R{0};
    if constexpr (sizeof(R) == 4) return std::bit_cast<float>(0x7fffffffu);
    return std::bit_cast<double>(0x7fff'ffff'ffff'ffffull);
  }
  if constexpr (sizeof(R) == 4) {
    if (small & kFtz) value = flush(value);
  }
  if (small & kSat) value = value < 0 ? R{0} : value > 1 ? R{1} : value;
  if ((small & kRelu) && value < 0) value = R{0};
  return value;
}

template <typename A>
double read_float(const Word<std::uint32_t>* lanes32, const std::uint64_t* lanes64, std::uint32_t l,
                  std::uint8_t small) {
  if constexpr (std::is_same_v<A, Half>) {
    return half_to_double(static_cast<std::uint16_t>(lanes32[l]));
  } else if constexpr (std::is_same_v<A, Bfloat>) {
    return bfloat_to_float(static_cast<std::uint16_t>(lanes32[l]));
  } else if constexpr (std::is_same_v<A, float>) {
    const float value = std::bit_cast<float>(lanes32[l]);
    return small & kFtz ? flush(value) : value;
  } else {
    return std::bit_cast<double>(lanes64[l]);
  }
}

template <typename T>
inline constexpr bool kIsFloat =
    std::is_floating_point_v<T> || std::is_same_v<T, Half> || std::is_same_v<T, Bfloat>;

template <typename R, typename A>
Flow convert(Warp& warp, const Instruction& i, std::uint32_t mask) {
  const auto* a32 = warp.in<std::uint32_t>(i.a);
  const auto* a64 = warp.in<std::uint64_t>(i.a);
  const Rounding rounding = rounding_of(i.small);
  for_lanes(mask, [&](std::uint32_t l) {
    if constexpr (!kIsFloat<R> && !kIsFloat<A>) {
      const A value = get<A>(sizeof(A) == 8 ? reinterpret_cast<const Word<A>*>(a64)
                                            : reinterpret_cast<const Word<A>*>(a32), l);
      put<R>(warp.out<Word<R>>(i.d), l, integer_to_integer<R>(value, i.small & kSat));
    } else if constexpr (!kIsFloat<R>) {
      const double value = read_float<A>(a32, a64, l, i.small);
      put<R>(warp.out<Word<R>>(i.d), l, float_to_integer<R>(value, rounding));
    } else if constexpr (std::is_same_v<R, Half> || std::is_same_v<R, Bfloat>) {
      double value;
      if constexpr (kIsFloat<A>) {
        value = read_float<A>(a32, a64, l, i.small);
      } else {
        // 64-bit integers beyond 2^53 are made odd when inexact, so that the one rounding below is
        // right.
        const A whole = get<A>(reinterpret_cast<const Word<A>*>(sizeof(A) == 8 ? static_cast<const void*>(a64) : a32), l);
        value = convert_rounded<double>(whole, Rounding::zero);
        if (sizeof(A) == 8 && static_cast<__int128>(value) != static_cast<__int128>(whole)) {
          value = std::bit_cast<double>(std::bit_cast<std::uint64_t>(value) | 1);
        }
      }
      if (i.small & kSat) value = std::isnan(value) ? 0 : value < 0 ? 0 : value > 1 ? 1 : value;
      if ((i.small & kRelu) && value < 0) value = 0;
      warp.out<std::uint32_t>(i.d)[l] = std::is_same_v<R, Half> ? double_to_half(value, rounding)
                                                               : double_to_bfloat(value, rounding);
    } else if constexpr (kIsFloat<A>) {
      const double value = read_float<A>(a32, a64, l, i.small);
      R result;
      if constexpr (std::is_same_v<R, A>) {
        // cvt.rni.f32.f32 and the like round to a whole number; without a rounding it is a copy.
        result = static_cast<R>(i.immediate != 0 ? round_to_integer(value, rounding) : value);
      } else {
        result = convert_rounded<R>(value, rounding);
      }
      put<R>(warp.out<Word<R>>(i.d), l, finish_float(result, i.small));
    } else {
      const A value = get<A>(reinterpret_cast<const Word<A>*>(sizeof(A) == 8 ? static_cast<const void*>(a64) : a32), l);
      put<R>(warp.out<Word<R>>(i.d), l, finish_float(convert_rounded<R>(value, rounding), i.small));
    }
  });
  return Flow::next;
}

/// cvt.rn.f16x2.f32 d, a, b: a in the upper half.
template <bool kBfloat>
Flow convert_pair(Warp& warp, const Instruction& i, std::uint32_t mask) {
  auto* d = warp.out<std::uint32_t>(i.d);
  const auto* a = warp.in<float>(i.a);
  const auto* b = warp.in<float>(i.b);
  const auto one = [&](float value) -> std::uint32_t {
    if ((i.small & kRelu) && value < 0) value = 0;
    return kBfloat ? double_to_bfloat(value, rounding_of(i.small))
                   : double_to_half(value, rounding_of(i.small));
  };
  for_lanes(mask, [&](std::uint32_t l) { d[l] = one(a[l]) << 16 | one(b[l]); });
  return Flow::next;
}

template <typename R>
Handler from_type(ScalarType a) {
  switch (a) {
    case ScalarType::b8:
    case ScalarType::u8: return convert<R, std::uint8_t>;
    case ScalarType::s8: return convert<R, std::int8_t>;
    case ScalarType::b16:
    case ScalarType::u16: return convert<R, std::uint16_t>;
    case ScalarType::s16: return convert<R, std::int16_t>;
    case ScalarType::b32:
    case ScalarType::u32: return convert<R, std::uint32_t>;
    case ScalarType::s32: return convert<R, std::int32_t>;
    case ScalarType::b64:
    case ScalarType::u64: return convert<R, std::uint64_t>;
    case ScalarType::s64: return convert<R, std::int64_t>;
    case ScalarType::f16: return convert<R, Half>;
    case ScalarType::bf16: return convert<R, Bfloat>;
    case ScalarType::f32: return convert<R, float>;
    case ScalarType::f64: return convert<R, double>;
    default: return nullptr;
  }
}

// --- Comparison --------------------------------------------------------------------------------

struct Lt { template <typename T> static bool apply(T a, T b) { return a < b; } };
struct Le { template <typename T> static bool apply(T a, T b) { return a <= b; } };
struct Gt { template <typename T> static bool apply(T a, T b) { return a > b; } };
struct Ge { template <typename T> static bool apply(T a, T b) { return a >= b; } };
struct Eq { template <typename T> static bool apply(T a, T b) { return a == b; } };
struct Ne { template <typename T> static bool apply(T a, T b) { return a != b; } };
// The ordered != of floats is false for a NaN, unlike C's.
struct OrderedNe { template <typename T> static bool apply(T a, T b) { return a < b || a > b; } };
struct Num { template <typename T> static bool apply(T a, T b) { return a == a && b == b; } };
struct Nan { template <typename T> static bool apply(T a, T b) { return !(a == a && b == b); } };
template <typename Op>
struct Or { template <typename T> static bool apply(T a, T b) { return Op::apply(a, b) || Nan::apply(a, b); } };

/// d = result and d2 its negation (each combined with the predicate c by `small`: 0 none, 1 and, 2
/// or, 3 xor; bit 2: c negated; bit 3: there is a d2).
template <typename Op, typename T, bool kFlush>
Flow compare(Warp& warp, const Instruction& i, std::uint32_t mask) {
  const auto* a = warp.in<Word<T>>(i.a);
  const auto* b = warp.in<Word<T>>(i.b);
  std::uint32_t result = 0;
  for_lanes(mask, [&](std::uint32_t l) {
    T x = get<T>(a, l), y = get<T>(b, l);
    if constexpr (kFlush) x = flush(x), y = flush(y);
    result |= static_cast<std::uint32_t>(Op::apply(x, y)) << l;
  });
  std::uint32_t negation = ~result;
  if (i.small & 3) {
    std::uint32_t with = *warp.in<std::uint32_t>(i.c);
    if (i.small & 4) with = ~with;
    const auto combine = [&](std::uint32_t value) {
      return (i.small & 3) == 1 ? value & with : (i.small & 3) == 2 ? value | with : value ^ with;
    };
    result = combine(result);
    negation = combine(negation);
  }
  auto& d = *warp.out<std::uint32_t>(i.d);
  d = (d & ~mask) | (result & mask);
  if (i.small & 8) {
    auto& d2 = *warp.out<std::uint32_t>(i.d2);
    d2 = (d2 & ~mask) | (negation & mask);
  }
  return Flow::next;
}

template <typename Op>
Handler compare_by_type(ScalarType t, bool ftz) {
  switch (t) {
    case ScalarType::b16:
    case ScalarType::u16: return compare<Op, std::uint16_t, false>;
    case ScalarType::s16: return compare<Op, std::int16_t, false>;
    case ScalarType::b32:
    case ScalarType::u32: return compare<Op, std::uint32_t, false>;
    case ScalarType::s32: return compare<Op, std::int32_t, false>;
    case ScalarType::b64:
    case ScalarType::u64: return compare<Op, std::uint64_t, false>;
    case ScalarType::s64: return compare<Op, std::int64_t, false>;
    case ScalarType::f32: return ftz ? compare<Op, float, true> : compare<Op, float, false>;
    case ScalarType::f64: return compare<Op, double, false>;
    default: return nullptr;
  }
}
template <typename Op>
Handler compare_float(ScalarType t, bool ftz) {
  return t == ScalarType::f32 || t == ScalarType::f64 ? compare_by_type<Op>(t, ftz) : nullptr;
}

}  // namespace

std::uint8_t convert_small(const Opcode& o) {
  Rounding rounding = Rounding::nearest;
  if (o.has("rz") || o.has("rzi")) rounding = Rounding::zero;
  if (o.has("rm") || o.has("rmi")) rounding = Rounding::down;
  if (o.has("rp") || o.has("rpi")) rounding = Rounding::up;
  return static_cast<std::uint8_t>((o.has("ftz") ? kFtz : 0) | (o.has("sat") ? kSat : 0) |
                                   (o.has("relu") ? kRelu : 0) |
                                   static_cast<unsigned>(rounding) << kRoundShift);
}

Shape convert_shape(const Opcode& o) {
  if (o.type_count != 2 || !o.only({"rn", "rz", "rm", "rp", "rni", "rzi", "rmi", "rpi", "ftz", "sat",
                                    "relu"})) {
    return {};
  }
  const ScalarType r = o.types[0], a = o.types[1];
  if (r == ScalarType::f16x2 || r == ScalarType::bf16x2) {
    if (a != ScalarType::f32) return {};
    return {r == ScalarType::f16x2 ? convert_pair<false> : convert_pair<true>, ScalarType::b32,
            {a, a}, 2};
  }
  Handler handler = nullptr;
  switch (r) {
    case ScalarType::b8:
    case ScalarType::u8: handler = from_type<std::uint8_t>(a); break;
    case ScalarType::s8: handler = from_type<std::int8_t>(a); break;
    case ScalarType::b16:
    case ScalarType::u16: handler = from_type<std::uint16_t>(a); break;
    case ScalarType::s16: handler = from_type<std::int16_t>(a); break;
    case ScalarType::b32:
    case ScalarType::u32: handler = from_type<std::uint32_t>(a); break;
    case ScalarType::s32: handler = from_type<std::int32_t>(a); break;
    case ScalarType::b64:
    case ScalarType::u64: handler = from_type<std::uint64_t>(a); break;
    case ScalarType::s64: handler = from_type<std::int64_t>(a); break;
    case ScalarType::f16: handler = from_type<Half>(a); break;
    case ScalarType::bf16: handler = from_type<Bfloat>(a); break;
    case ScalarType::f32: handler = from_type<float>(a); break;
    case ScalarType::f64: handler = from_type<double>(a); break;
    default: break;
  }
  return {handler, r, {a}, 1};
}

Handler compare_handler(std::string_view op, ScalarType t, bool ftz) {
  const bool real = is_float(t);
  if (op == "eq") return compare_by_type<Eq>(t, ftz);
  if (op == "ne") return real ? compare_float<OrderedNe>(t, ftz) : compare_by_type<Ne>(t, ftz);
  if (op == "lt" || op == "lo") return compare_by_type<Lt>(t, ftz);
  if (op == "le" || op == "ls") return compare_by_type<Le>(t, ftz);
  if (op == "gt" || op == "hi") return compare_by_type<Gt>(t, ftz);
  if (op == "ge" || op == "hs") return compare_by_type<Ge>(t, ftz);
  if (op == "equ") return compare_float<Or<Eq>>(t, ftz);
  if (op == "neu") return compare_float<Ne>(t, ftz);
  if (op == "ltu") return compare_float<Or<Lt>>(t, ftz);
  if (op == "leu") return compare_float<Or<Le>>(t, ftz);
  if (op == "gtu") return compare_float<Or<Gt>>(t, ftz);
  if (op == "geu") return compare_float<Or<Ge>>(t, ftz);
  if (op == "num") return compare_float<Num>(t, ftz);
  if (op == "nan") return compare_float<Nan>(t, ftz);
  return nullptr;
}

}  // namespace remora::softgpu
