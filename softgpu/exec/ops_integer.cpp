// SPDX-License-Identifier: Apache-2.0
// Integer arithmetic, logic and bit operations (PTX ISA, 9.7.1, 9.7.2 and 9.7.8).
#include <algorithm>
#include <bit>
#include <limits>
#include <type_traits>

#include "softgpu/exec/lanes.h"
#include "softgpu/exec/opcode.h"

namespace remora::softgpu {
namespace {

template <typename T>
using Unsigned = std::make_unsigned_t<T>;
template <typename T>
using Wide = std::conditional_t<
    sizeof(T) == 2, std::conditional_t<std::is_signed_v<T>, std::int32_t, std::uint32_t>,
    std::conditional_t<sizeof(T) == 4,
                       std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>,
                       std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>>>;

// Wrapping arithmetic is done unsigned: overflow of signed types is undefined in C++, not in PTX.
struct Add {
  template <typename T>
  static T apply(T a, T b) {
    return static_cast<T>(static_cast<Unsigned<T>>(a) + static_cast<Unsigned<T>>(b));
  }
};
struct AddSaturating {
  static std::int32_t apply(std::int32_t a, std::int32_t b) {
    return static_cast<std::int32_t>(
        std::clamp<std::int64_t>(std::int64_t{a} + b, INT32_MIN, INT32_MAX));
  }
};
struct Sub {
  template <typename T>
  static T apply(T a, T b) {
    return static_cast<T>(static_cast<Unsigned<T>>(a) - static_cast<Unsigned<T>>(b));
  }
};
struct SubSaturating {
  static std::int32_t apply(std::int32_t a, std::int32_t b) {
    return static_cast<std::int32_t>(
        std::clamp<std::int64_t>(std::int64_t{a} - b, INT32_MIN, INT32_MAX));
  }
};
struct MulLo {
  template <typename T>
  static T apply(T a, T b) {
    // 64 bits: a product of two uint16_t as int would overflow.
    return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  }
};
struct MulHi {
  template <typename T>
  static T apply(T a, T b) {
    return static_cast<T>((static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b)) >> (sizeof(T) * 8));
  }
};
struct MulWide {
  template <typename T>
  static Wide<T> apply(T a, T b) {
    return static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b);
  }
};
struct Mul24Lo {
  template <typename T>
  static T apply(T a, T b) {
    const auto narrow = [](T v) -> std::int64_t {
      const auto low = static_cast<std::uint32_t>(v) << 8;
      if constexpr (std::is_signed_v<T>) return static_cast<std::int32_t>(low) >> 8;
      return low >> 8;
    };
    return static_cast<T>(narrow(a) * narrow(b));
  }
};
struct Mul24Hi {
  template <typename T>
  static T apply(T a, T b) {
    const auto narrow = [](T v) -> std::int64_t {
      const auto low = static_cast<std::uint32_t>(v) << 8;
      if constexpr (std::is_signed_v<T>) return static_cast<std::int32_t>(low) >> 8;
      return low >> 8;
    };
    return static_cast<T>((narrow(a) * narrow(b)) >> 16);
  }
};
template <typename Product>
struct MultiplyAdd {
  template <typename T, typename C>
  static C apply(T a, T b, C c) {
    return Add::apply(static_cast<C>(Product::apply(a, b)), c);
  }
};
struct MadHiSaturating {
  static std::int32_t apply(std::int32_t a, std::int32_t b, std::int32_t c) {
    return AddSaturating::apply(MulHi::apply(a, b), c);
  }
};
// Division by zero gives all ones, the remainder the dividend, as the hardware does; the most
// negative number by -1 wraps.
struct Div {
  template <typename T>
  static T apply(T a, T b) {
    if (b == 0) return static_cast<T>(-1);
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return Sub::apply(T{0}, a);
    }
    return static_cast<T>(a / b);
  }
};
struct Rem {
  template <typename T>
  static T apply(T a, T b) {
    if (b == 0) return a;
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return 0;
    }
    return static_cast<T>(a % b);
  }
};
struct Abs {
  template <typename T>
  static T apply(T a) {
    return a < 0 ? Sub::apply(T{0}, a) : a;
  }
};
struct Neg {
  template <typename T>
  static T apply(T a) {
    return Sub::apply(T{0}, a);
  }
};
struct Min {
  template <typename T>
  static T apply(T a, T b) {
    return b < a ? b : a;
  }
};
struct Max {
  template <typename T>
  static T apply(T a, T b) {
    return a < b ? b : a;
  }
};
struct Sad {
  template <typename T>
  static T apply(T a, T b, T c) {
    return Add::apply(c, a < b ? Sub::apply(b, a) : Sub::apply(a, b));
  }
};
struct And {
  template <typename T>
  static T apply(T a, T b) {
    return a & b;
  }
};
struct Or {
  template <typename T>
  static T apply(T a, T b) {
    return a | b;
  }
};
struct Xor {
  template <typename T>
  static T apply(T a, T b) {
    return a ^ b;
  }
};
struct Not {
  template <typename T>
  static T apply(T a) {
    return static_cast<T>(~a);
  }
};
struct Cnot {
  template <typename T>
  static T apply(T a) {
    return a == 0 ? 1 : 0;
  }
};
struct Shl {
  template <typename T>
  static T apply(T a, std::uint32_t by) {
    return by >= sizeof(T) * 8 ? T{0} : static_cast<T>(a << by);
  }
};
struct Shr {
  template <typename T>
  static T apply(T a, std::uint32_t by) {
    if (by >= sizeof(T) * 8) return a < 0 ? static_cast<T>(-1) : T{0};
    return static_cast<T>(a >> by);
  }
};
struct Popc {
  template <typename T>
  static std::uint32_t apply(T a) {
    return static_cast<std::uint32_t>(std::popcount(a));
  }
};
struct Clz {
  template <typename T>
  static std::uint32_t apply(T a) {
    return static_cast<std::uint32_t>(std::countl_zero(a));
  }
};
struct Bfind {
  template <typename T>
  static std::uint32_t apply(T a) {
    auto bits = static_cast<Unsigned<T>>(a);
    if (a < 0) bits = static_cast<Unsigned<T>>(~bits);
    if (bits == 0) return UINT32_MAX;
    return static_cast<std::uint32_t>(std::bit_width(bits)) - 1;
  }
};
struct BfindShift {
  template <typename T>
  static std::uint32_t apply(T a) {
    const std::uint32_t at = Bfind::apply(a);
    return at == UINT32_MAX ? at : static_cast<std::uint32_t>(sizeof(T) * 8 - 1) - at;
  }
};
struct Brev {
  template <typename T>
  static T apply(T a) {
    T result = 0;
    for (unsigned i = 0; i < sizeof(T) * 8; ++i) {
      result = static_cast<T>(result << 1 | (a >> i & 1));
    }
    return result;
  }
};
struct Bfe {
  template <typename T>
  static T apply(T a, std::uint32_t pos, std::uint32_t len) {
    constexpr std::uint32_t kMsb = sizeof(T) * 8 - 1;
    pos &= 0xff;
    len &= 0xff;
    const auto bits = static_cast<Unsigned<T>>(a);
    std::uint32_t sign = 0;
    if (std::is_signed_v<T> && len != 0) {
      sign = static_cast<std::uint32_t>(bits >> std::min(pos + len - 1, kMsb)) & 1;
    }
    Unsigned<T> result = pos > kMsb ? Unsigned<T>{0} : static_cast<Unsigned<T>>(bits >> pos);
    const std::uint32_t present = pos > kMsb ? 0 : std::min(len, kMsb + 1 - pos);
    if (present <= kMsb) {
      const auto keep = static_cast<Unsigned<T>>((Unsigned<T>{1} << present) - 1);
      result = static_cast<Unsigned<T>>((result & keep) | (sign ? ~keep : Unsigned<T>{0}));
    }
    return static_cast<T>(result);
  }
};
/// bfi a, b, pos, len: the place c is pos, e is len.
template <typename T>
Flow bit_field_insert(Warp& warp, const Instruction& i, std::uint32_t mask) {
  auto* d = warp.out<T>(i.d);
  const auto* a = warp.in<T>(i.a);
  const auto* b = warp.in<T>(i.b);
  const auto* c = warp.in<std::uint32_t>(i.c);
  const auto* e = warp.in<std::uint32_t>(i.e);
  constexpr std::uint32_t kBits = sizeof(T) * 8;
  for_lanes(mask, [&](std::uint32_t l) {
    const std::uint32_t pos = c[l] & 0xff, len = e[l] & 0xff;
    if (pos >= kBits || len == 0) {
      d[l] = b[l];
      return;
    }
    const std::uint32_t present = std::min(len, kBits - pos);
    const T field = present == kBits ? ~T{0} : ((T{1} << present) - 1) << pos;
    d[l] = (b[l] & ~field) | (a[l] << pos & field);
  });
  return Flow::next;
}
struct Bmsk {
  static std::uint32_t apply(std::uint32_t a, std::uint32_t b) {
    if (a >= 32 || b == 0) return 0;
    const std::uint32_t ones = b >= 32 ? UINT32_MAX : (1u << b) - 1;
    return ones << a;
  }
};
struct Szext {
  template <typename T>
  static T apply(T a, std::uint32_t n) {
    if (n == 0) return 0;
    if (n >= 32) return a;
    const auto up = static_cast<std::uint32_t>(a) << (32 - n);
    return static_cast<T>(static_cast<T>(up) >> (32 - n));
  }
};
/// The n-th set bit from `base` on, upward or downward (fns.b32).
struct Fns {
  static std::uint32_t apply(std::uint32_t mask, std::uint32_t base, std::int32_t offset) {
    if (offset == 0) return base < 32 && (mask >> base & 1) ? base : UINT32_MAX;
    const int step = offset > 0 ? 1 : -1;
    int left = offset > 0 ? offset : -offset;
    for (int pos = static_cast<int>(base); pos >= 0 && pos < 32; pos += step) {
      if ((mask >> pos & 1) && --left == 0) return static_cast<std::uint32_t>(pos);
    }
    return UINT32_MAX;
  }
};
template <bool kLeft, bool kWrap>
struct Shf {
  static std::uint32_t apply(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    const std::uint32_t n = kWrap ? c & 31 : std::min(c, 32u);
    const std::uint64_t both = std::uint64_t{b} << 32 | a;
    return static_cast<std::uint32_t>(kLeft ? both << n >> 32 : both >> n);
  }
};
std::uint32_t permute(std::uint32_t a, std::uint32_t b, const std::uint32_t (&selector)[4],
                      bool with_sign) {
  const std::uint64_t bytes = std::uint64_t{b} << 32 | a;
  std::uint32_t result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    std::uint32_t byte = static_cast<std::uint32_t>(bytes >> (8 * (selector[i] & 7))) & 0xff;
    if (with_sign && (selector[i] & 8)) byte = byte & 0x80 ? 0xff : 0;
    result |= byte << (8 * i);
  }
  return result;
}
struct Prmt {
  static std::uint32_t apply(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    return permute(a, b, {c & 15, c >> 4 & 15, c >> 8 & 15, c >> 12 & 15}, true);
  }
};
enum class PermuteMode { f4e, b4e, rc8, ecl, ecr, rc16 };
template <PermuteMode kMode>
struct PrmtMode {
  static std::uint32_t apply(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    const std::uint32_t n = c & 3;
    std::uint32_t s[4];
    for (std::uint32_t i = 0; i < 4; ++i) {
      switch (kMode) {
        case PermuteMode::f4e: s[i] = n + i; break;
        case PermuteMode::b4e: s[i] = (n - i) & 7; break;
        case PermuteMode::rc8: s[i] = n; break;
        case PermuteMode::ecl: s[i] = std::max(i, n); break;
        case PermuteMode::ecr: s[i] = std::min(i, n); break;
        case PermuteMode::rc16: s[i] = (n & 1) * 2 + (i & 1); break;
      }
    }
    return permute(a, b, s, false);
  }
};
template <typename T, typename E, unsigned kStep>
Flow dot_product(Warp& warp, const Instruction& i, std::uint32_t mask) {
  // dp4a; dp2a.lo and .hi (small: the first byte of b). T and E: types of a's and b's elements.
  auto* d = warp.out<std::uint32_t>(i.d);
  const auto* a = warp.in<std::uint32_t>(i.a);
  const auto* b = warp.in<std::uint32_t>(i.b);
  const auto* c = warp.in<std::uint32_t>(i.c);
  for_lanes(mask, [&](std::uint32_t l) {
    std::uint32_t sum = c[l];
    for (unsigned k = 0; k < 4 / kStep; ++k) {
      const auto left = static_cast<T>(a[l] >> (8 * kStep * k));
      const auto right = static_cast<E>(b[l] >> (8 * (k + i.small)));
      sum += static_cast<std::uint32_t>(static_cast<std::int32_t>(left) *
                                        static_cast<std::int32_t>(right));
    }
    d[l] = sum;
  });
  return Flow::next;
}
/// lop3: immediate is the truth table.
Flow logic3(Warp& warp, const Instruction& i, std::uint32_t mask) {
  auto* d = warp.out<std::uint32_t>(i.d);
  const auto* a = warp.in<std::uint32_t>(i.a);
  const auto* b = warp.in<std::uint32_t>(i.b);
  const auto* c = warp.in<std::uint32_t>(i.c);
  const auto table = static_cast<std::uint32_t>(i.immediate);
  for_lanes(mask, [&](std::uint32_t l) {
    std::uint32_t result = 0;
    for (std::uint32_t k = 0; k < 8; ++k) {
      if (!(table >> k & 1)) continue;
      result |= (k & 4 ? a[l] : ~a[l]) & (k & 2 ? b[l] : ~b[l]) & (k & 1 ? c[l] : ~c[l]);
    }
    d[l] = result;
  });
  return Flow::next;
}
/// add.cc, addc, sub.cc, subc, mad.cc, madc: d2 is the carry, a predicate mask per warp; small: bit
/// 0 reads it, bit 1 writes it, bit 2 subtracts.
template <typename T>
Flow carry_chain(Warp& warp, const Instruction& i, std::uint32_t mask) {
  auto* d = warp.out<T>(i.d);
  const auto* a = warp.in<T>(i.a);
  const auto* b = warp.in<T>(i.b);
  auto& flag = *warp.out<std::uint32_t>(i.d2);
  std::uint32_t carries = 0;
  for_lanes(mask, [&](std::uint32_t l) {
    const unsigned __int128 in = i.small & 1 ? flag >> l & 1 : 0;
    const unsigned __int128 sum = i.small & 4 ? static_cast<unsigned __int128>(a[l]) - b[l] - in
                                              : static_cast<unsigned __int128>(a[l]) + b[l] + in;
    d[l] = static_cast<T>(sum);
    if (sum >> (sizeof(T) * 8) & 1) carries |= 1u << l;
  });
  if (i.small & 2) flag = (flag & ~mask) | carries;
  return Flow::next;
}

template <typename Op, typename T>
Shape shape1(ScalarType t) {
  return {unary<Op, T, T>, t, {t}, 1};
}
template <typename Op, typename T>
Shape shape2(ScalarType t) {
  return {binary<Op, T, T, T>, t, {t, t}, 2};
}

/// `f` is called with a value of the C++ type that `t` means; `narrow`: also 8 bits.
template <typename F>
Shape by_type(ScalarType t, F&& f) {
  switch (t) {
    case ScalarType::b16:
    case ScalarType::u16:
      return f(std::uint16_t{});
    case ScalarType::s16:
      return f(std::int16_t{});
    case ScalarType::b32:
    case ScalarType::u32:
      return f(std::uint32_t{});
    case ScalarType::s32:
      return f(std::int32_t{});
    case ScalarType::b64:
    case ScalarType::u64:
      return f(std::uint64_t{});
    case ScalarType::s64:
      return f(std::int64_t{});
    default:
      return {};
  }
}

template <typename Op>
Shape binary_by_type(ScalarType t) {
  return by_type(t, [&]<typename T>(T) { return shape2<Op, T>(t); });
}
template <typename Op>
Shape unary_by_type(ScalarType t) {
  return by_type(t, [&]<typename T>(T) { return shape1<Op, T>(t); });
}
template <typename Op>
Shape shift_by_type(ScalarType t) {
  return by_type(t, [&]<typename T>(T) {
    return Shape{binary<Op, T, T, std::uint32_t>, t, {t, ScalarType::u32}, 2};
  });
}

ScalarType widened(ScalarType t) {
  switch (t) {
    case ScalarType::u16: return ScalarType::u32;
    case ScalarType::s16: return ScalarType::s32;
    case ScalarType::u32: return ScalarType::u64;
    case ScalarType::s32: return ScalarType::s64;
    default: return ScalarType::none;
  }
}

template <typename Product>
Shape mad_by_type(ScalarType t) {
  return by_type(t, [&]<typename T>(T) {
    return Shape{ternary<MultiplyAdd<Product>, T, T, T, T>, t, {t, t, t}, 3};
  });
}

Shape wide_shape(ScalarType t, bool add) {
  const ScalarType w = widened(t);
  if (w == ScalarType::none) return {};
  return by_type(t, [&]<typename T>(T) -> Shape {
    if constexpr (sizeof(T) < 8) {
      using W = Wide<T>;
      if (add) return {ternary<MultiplyAdd<MulWide>, W, T, T, W>, w, {t, t, w}, 3};
      return {binary<MulWide, W, T, T>, w, {t, t}, 2};
    } else {
      return {};
    }
  });
}

Shape carry_shape(const Opcode& o) {
  const ScalarType t = o.type();
  if (size_bytes(t) == 4) return {carry_chain<std::uint32_t>, t, {t, t}, 2};
  if (size_bytes(t) == 8) return {carry_chain<std::uint64_t>, t, {t, t}, 2};
  return {};
}

Shape count_shape(const Opcode& o, bool leading) {
  const ScalarType t = o.type(), r = ScalarType::u32;
  if (t == ScalarType::b32) {
    return {leading ? unary<Clz, std::uint32_t, std::uint32_t>
                    : unary<Popc, std::uint32_t, std::uint32_t>, r, {t}, 1};
  }
  if (t == ScalarType::b64) {
    return {leading ? unary<Clz, std::uint32_t, std::uint64_t>
                    : unary<Popc, std::uint32_t, std::uint64_t>, r, {t}, 1};
  }
  return {};
}

Shape permute_shape(const Opcode& o) {
  constexpr ScalarType t = ScalarType::b32;
  Handler handler = ternary<Prmt, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>;
#define REMORA_MODE(name)                                                                      \
  if (o.has(#name))                                                                            \
    handler = ternary<PrmtMode<PermuteMode::name>, std::uint32_t, std::uint32_t, std::uint32_t, \
                      std::uint32_t>;
  REMORA_MODE(f4e) REMORA_MODE(b4e) REMORA_MODE(rc8) REMORA_MODE(ecl) REMORA_MODE(ecr)
  REMORA_MODE(rc16)
#undef REMORA_MODE
  return {handler, t, {t, t, t}, 3};
}

Shape funnel_shape(const Opcode& o) {
  constexpr ScalarType t = ScalarType::b32;
  using U = std::uint32_t;
  const bool left = o.has("l"), wrap = o.has("wrap");
  const Handler handler = left ? (wrap ? ternary<Shf<true, true>, U, U, U, U>
                                       : ternary<Shf<true, false>, U, U, U, U>)
                               : (wrap ? ternary<Shf<false, true>, U, U, U, U>
                                       : ternary<Shf<false, false>, U, U, U, U>);
  return {handler, t, {t, t, t}, 3};
}

Shape dot_shape(const Opcode& o) {
  if (o.type_count != 2) return {};
  const bool sa = is_signed(o.types[0]), sb = is_signed(o.types[1]);
  const ScalarType b = ScalarType::b32;
  Handler handler;
  if (o.base == "dp4a") {
    handler = sa ? (sb ? dot_product<std::int8_t, std::int8_t, 1>
                       : dot_product<std::int8_t, std::uint8_t, 1>)
                 : (sb ? dot_product<std::uint8_t, std::int8_t, 1>
                       : dot_product<std::uint8_t, std::uint8_t, 1>);
  } else {
    handler = sa ? (sb ? dot_product<std::int16_t, std::int8_t, 2>
                       : dot_product<std::int16_t, std::uint8_t, 2>)
                 : (sb ? dot_product<std::uint16_t, std::int8_t, 2>
                       : dot_product<std::uint16_t, std::uint8_t, 2>);
  }
  return {handler, b, {b, b, b}, 3};
}

}  // namespace

Shape integer_shape(const Opcode& o) {
  const ScalarType t = o.type();
  if (o.base == "lop3") return {logic3, t, {t, t, t}, 3};
  if (o.base == "prmt") return permute_shape(o);
  if (o.base == "shf") return funnel_shape(o);
  if (o.base == "dp4a" || o.base == "dp2a") return dot_shape(o);
  if (is_float(t) || t == ScalarType::pred || t == ScalarType::none || size_bytes(t) > 8) return {};
  if (o.base == "addc" || o.base == "subc" ||
      ((o.base == "add" || o.base == "sub") && o.has("cc"))) {
    return carry_shape(o);
  }
  const bool sat = o.has("sat");
  if (sat && t != ScalarType::s32) return {};
  if (o.base == "add") return sat ? shape2<AddSaturating, std::int32_t>(t) : binary_by_type<Add>(t);
  if (o.base == "sub") return sat ? shape2<SubSaturating, std::int32_t>(t) : binary_by_type<Sub>(t);
  if (o.base == "mul") {
    if (o.has("wide")) return wide_shape(t, false);
    return o.has("hi") ? binary_by_type<MulHi>(t) : binary_by_type<MulLo>(t);
  }
  if (o.base == "mad" && !o.has("cc")) {
    if (o.has("wide")) return wide_shape(t, true);
    if (sat) {
      using S = std::int32_t;
      return {ternary<MadHiSaturating, S, S, S, S>, t, {t, t, t}, 3};
    }
    return o.has("hi") ? mad_by_type<MulHi>(t) : mad_by_type<MulLo>(t);
  }
  if ((o.base == "mul24" || o.base == "mad24") && size_bytes(t) == 4 && !sat) {
    const bool s = is_signed(t), hi = o.has("hi");
    using I = std::int32_t;
    using U = std::uint32_t;
    if (o.base == "mul24") {
      return {s ? (hi ? binary<Mul24Hi, I, I, I> : binary<Mul24Lo, I, I, I>)
                : (hi ? binary<Mul24Hi, U, U, U> : binary<Mul24Lo, U, U, U>), t, {t, t}, 2};
    }
    return {s ? (hi ? ternary<MultiplyAdd<Mul24Hi>, I, I, I, I>
                    : ternary<MultiplyAdd<Mul24Lo>, I, I, I, I>)
              : (hi ? ternary<MultiplyAdd<Mul24Hi>, U, U, U, U>
                    : ternary<MultiplyAdd<Mul24Lo>, U, U, U, U>), t, {t, t, t}, 3};
  }
  if (o.base == "div") return binary_by_type<Div>(t);
  if (o.base == "rem") return binary_by_type<Rem>(t);
  if (o.base == "abs") return unary_by_type<Abs>(t);
  if (o.base == "neg") return unary_by_type<Neg>(t);
  if (o.base == "min" && !o.has("relu")) return binary_by_type<Min>(t);
  if (o.base == "max" && !o.has("relu")) return binary_by_type<Max>(t);
  if (o.base == "sad") {
    return by_type(t, [&]<typename T>(T) {
      return Shape{ternary<Sad, T, T, T, T>, t, {t, t, t}, 3};
    });
  }
  if (o.base == "and") return binary_by_type<And>(t);
  if (o.base == "or") return binary_by_type<Or>(t);
  if (o.base == "xor") return binary_by_type<Xor>(t);
  if (o.base == "not") return unary_by_type<Not>(t);
  if (o.base == "cnot") return unary_by_type<Cnot>(t);
  if (o.base == "shl") return shift_by_type<Shl>(t);
  if (o.base == "shr") return shift_by_type<Shr>(t);
  if (o.base == "popc") return count_shape(o, false);
  if (o.base == "clz") return count_shape(o, true);
  if (o.base == "brev") {
    if (t == ScalarType::b32) return shape1<Brev, std::uint32_t>(t);
    if (t == ScalarType::b64) return shape1<Brev, std::uint64_t>(t);
  }
  if (o.base == "bfind") {
    return by_type(t, [&]<typename T>(T) {
      return Shape{o.has("shiftamt") ? unary<BfindShift, std::uint32_t, T>
                                     : unary<Bfind, std::uint32_t, T>, ScalarType::u32, {t}, 1};
    });
  }
  if (o.base == "bfe") {
    return by_type(t, [&]<typename T>(T) {
      return Shape{ternary<Bfe, T, T, std::uint32_t, std::uint32_t>, t,
                   {t, ScalarType::u32, ScalarType::u32}, 3};
    });
  }
  if (o.base == "bfi") {
    const std::array<ScalarType, 3> sources{t, t, ScalarType::u32};
    if (t == ScalarType::b32) return {bit_field_insert<std::uint32_t>, t, sources, 3};
    if (t == ScalarType::b64) return {bit_field_insert<std::uint64_t>, t, sources, 3};
  }
  if (o.base == "bmsk" && o.has("clamp")) return shape2<Bmsk, std::uint32_t>(ScalarType::b32);
  if (o.base == "szext" && o.has("clamp")) {
    return {t == ScalarType::s32 ? binary<Szext, std::int32_t, std::int32_t, std::uint32_t>
                                 : binary<Szext, std::uint32_t, std::uint32_t, std::uint32_t>,
            t, {t, ScalarType::u32}, 2};
  }
  if (o.base == "fns") {
    using U = std::uint32_t;
    return {ternary<Fns, U, U, U, std::int32_t>, t, {t, t, ScalarType::s32}, 3};
  }
  return {};
}

}  // namespace remora::softgpu
