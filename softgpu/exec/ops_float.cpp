// SPDX-License-Identifier: Apache-2.0
// Floating-point arithmetic (PTX ISA, 9.7.3) for f32 and f64. Exact operations are the host's, which
// are IEEE's; directed roundings set the host's mode around the loop (this file is compiled with
// -frounding-math). Approximate operations are computed at least as accurately as documented.
// A NaN result is the canonical one of the manual: 0x7fffffff for f32.
#include <cfenv>
#include <cmath>
#include <limits>
#include <type_traits>

#include "softgpu/exec/lanes.h"
#include "softgpu/exec/opcode.h"

namespace remora::softgpu {
namespace {

template <typename T>
T canonical_nan() {
  if constexpr (sizeof(T) == 4) return std::bit_cast<float>(0x7fffffffu);
  return std::bit_cast<double>(0x7fff'ffff'ffff'ffffull);
}

template <typename T>
T flush(T value) {
  return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(T{0}, value) : value;
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

/// `small` of an instruction of this file.
enum : std::uint8_t { kFtz = 1, kSat = 2, kRoundShift = 2 };

class RoundingScope {
 public:
  explicit RoundingScope(std::uint8_t small)
      : mode_(host_mode(static_cast<Rounding>(small >> kRoundShift))) {
    if (mode_ != FE_TONEAREST) std::fesetround(mode_);
  }
  ~RoundingScope() {
    if (mode_ != FE_TONEAREST) std::fesetround(FE_TONEAREST);
  }
  RoundingScope(const RoundingScope&) = delete;
  RoundingScope& operator=(const RoundingScope&) = delete;

 private:
  const int mode_;
};

template <typename T>
T finish(T value, std::uint8_t small) {
  if (std::isnan(value)) return small & kSat ? T{0} : canonical_nan<T>();
  if (small & kFtz) value = flush(value);
  if (small & kSat) value = value < 0 ? T{0} : value > 1 ? T{1} : value == 0 ? T{0} : value;
  return value;
}

/// Any float operation of one, two or three sources of type T, with .ftz, .sat and a rounding.
template <typename Op, typename T, unsigned kSources>
Flow arithmetic(Warp& warp, const Instruction& i, std::uint32_t mask) {
  auto* d = warp.out<Word<T>>(i.d);
  const auto* a = warp.in<Word<T>>(i.a);
  const auto* b = warp.in<Word<T>>(kSources > 1 ? i.b : i.a);
  const auto* c = warp.in<Word<T>>(kSources > 2 ? i.c : i.a);
  const RoundingScope scope(i.small);
  const bool ftz = i.small & kFtz;
  for_lanes(mask, [&](std::uint32_t l) {
    T x = get<T>(a, l), y = get<T>(b, l), z = get<T>(c, l);
    if (ftz) x = flush(x), y = flush(y), z = flush(z);
    T result;
    if constexpr (kSources == 1) result = Op::apply(x);
    if constexpr (kSources == 2) result = Op::apply(x, y);
    if constexpr (kSources == 3) result = Op::apply(x, y, z);
    put<T>(d, l, finish(result, i.small));
  });
  return Flow::next;
}

struct Add { template <typename T> static T apply(T a, T b) { return a + b; } };
struct Sub { template <typename T> static T apply(T a, T b) { return a - b; } };
struct Mul { template <typename T> static T apply(T a, T b) { return a * b; } };
struct Div { template <typename T> static T apply(T a, T b) { return a / b; } };
struct Fma { template <typename T> static T apply(T a, T b, T c) { return std::fma(a, b, c); } };
struct Rcp { template <typename T> static T apply(T a) { return T{1} / a; } };
struct Sqrt { template <typename T> static T apply(T a) { return std::sqrt(a); } };
struct Rsqrt { template <typename T> static T apply(T a) { return static_cast<T>(1 / std::sqrt(static_cast<double>(a))); } };
struct Sin { template <typename T> static T apply(T a) { return static_cast<T>(std::sin(static_cast<double>(a))); } };
struct Cos { template <typename T> static T apply(T a) { return static_cast<T>(std::cos(static_cast<double>(a))); } };
struct Lg2 { template <typename T> static T apply(T a) { return static_cast<T>(std::log2(static_cast<double>(a))); } };
struct Ex2 { template <typename T> static T apply(T a) { return static_cast<T>(std::exp2(static_cast<double>(a))); } };
struct Tanh { template <typename T> static T apply(T a) { return static_cast<T>(std::tanh(static_cast<double>(a))); } };

// The common case, without ftz, sat and directed rounding, is worth loops of its own: plain
// operations that the compiler turns into vectors. A NaN that an operation makes on x86 has another
// pattern than the GPU's, so it is replaced.
template <typename Op, typename T>
Flow plain2(Warp& warp, const Instruction& i, std::uint32_t mask) {
  auto* d = warp.out<T>(i.d);
  const auto* a = warp.in<T>(i.a);
  const auto* b = warp.in<T>(i.b);
  for_lanes(mask, [&](std::uint32_t l) {
    const T r = Op::apply(a[l], b[l]);
    d[l] = r == r ? r : canonical_nan<T>();
  });
  return Flow::next;
}
template <typename T>
Flow plain_fma(Warp& warp, const Instruction& i, std::uint32_t mask) {
  auto* d = warp.out<T>(i.d);
  const auto* a = warp.in<T>(i.a);
  const auto* b = warp.in<T>(i.b);
  const auto* c = warp.in<T>(i.c);
  for_lanes(mask, [&](std::uint32_t l) {
    const T r = std::fma(a[l], b[l], c[l]);
    d[l] = r == r ? r : canonical_nan<T>();
  });
  return Flow::next;
}
#if defined(__x86_64__)
// With the host's own instruction instead of a call into the C library.
template <typename T>
__attribute__((target("avx2,fma"))) Flow plain_fma_native(Warp& warp, const Instruction& i,
                                                          std::uint32_t mask) {
  auto* d = warp.out<T>(i.d);
  const auto* a = warp.in<T>(i.a);
  const auto* b = warp.in<T>(i.b);
  const auto* c = warp.in<T>(i.c);
  if (mask == UINT32_MAX) {
    T results[kWarpLanes];
    for (std::uint32_t l = 0; l < kWarpLanes; ++l) {
      T r;
      if constexpr (sizeof(T) == 4) {
        r = __builtin_fmaf(a[l], b[l], c[l]);
      } else {
        r = __builtin_fma(a[l], b[l], c[l]);
      }
      results[l] = r == r ? r : canonical_nan<T>();
    }
    std::memcpy(d, results, sizeof results);
    return Flow::next;
  }
  for (; mask != 0; mask &= mask - 1) {
    const auto l = static_cast<std::uint32_t>(std::countr_zero(mask));
    T r;
    if constexpr (sizeof(T) == 4) {
      r = __builtin_fmaf(a[l], b[l], c[l]);
    } else {
      r = __builtin_fma(a[l], b[l], c[l]);
    }
    d[l] = r == r ? r : canonical_nan<T>();
  }
  return Flow::next;
}
#endif

template <typename T>
Handler fma_handler() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("fma") && __builtin_cpu_supports("avx2")) return plain_fma_native<T>;
#endif
  return plain_fma<T>;
}

// min and max: a NaN yields to a number, unless .NaN; -0 < +0. `small`: kFtz, 2: .NaN, 4: .xorsign.abs
template <bool kMax, typename T>
Flow extreme(Warp& warp, const Instruction& i, std::uint32_t mask) {
  auto* d = warp.out<T>(i.d);
  const auto* a = warp.in<T>(i.a);
  const auto* b = warp.in<T>(i.b);
  for_lanes(mask, [&](std::uint32_t l) {
    T x = a[l], y = b[l];
    if (i.small & kFtz) x = flush(x), y = flush(y);
    const bool sign = std::signbit(x) != std::signbit(y);
    if (i.small & 4) x = std::abs(x), y = std::abs(y);
    T r;
    if (std::isnan(x) || std::isnan(y)) {
      r = (i.small & 2) || (std::isnan(x) && std::isnan(y)) ? canonical_nan<T>()
                                                            : (std::isnan(x) ? y : x);
    } else if (x == y) {
      r = std::signbit(x) == kMax ? y : x;  // tells -0 from +0
    } else {
      r = (x < y) == kMax ? y : x;
    }
    if ((i.small & 4) && !std::isnan(r)) r = std::copysign(r, sign ? T{-1} : T{1});
    d[l] = r;
  });
  return Flow::next;
}

template <typename T>
Flow absolute(Warp& warp, const Instruction& i, std::uint32_t mask) {
  auto* d = warp.out<T>(i.d);
  const auto* a = warp.in<T>(i.a);
  for_lanes(mask, [&](std::uint32_t l) {
    const T x = i.small & kFtz ? flush(a[l]) : a[l];
    d[l] = std::isnan(x) ? canonical_nan<T>() : std::abs(x);
  });
  return Flow::next;
}
template <typename T>
Flow negated(Warp& warp, const Instruction& i, std::uint32_t mask) {
  auto* d = warp.out<T>(i.d);
  const auto* a = warp.in<T>(i.a);
  for_lanes(mask, [&](std::uint32_t l) {
    const T x = i.small & kFtz ? flush(a[l]) : a[l];
    d[l] = std::isnan(x) ? canonical_nan<T>() : -x;
  });
  return Flow::next;
}
/// copysign d, a, b: the sign of a on b.
struct CopySign { template <typename T> static T apply(T a, T b) { return std::copysign(b, a); } };

/// testp: a predicate; small: what is asked.
enum class Test : std::uint8_t { finite, infinite, number, notanumber, normal, subnormal };
template <typename T>
Flow test(Warp& warp, const Instruction& i, std::uint32_t mask) {
  const auto* a = warp.in<T>(i.a);
  std::uint32_t result = 0;
  for_lanes(mask, [&](std::uint32_t l) {
    bool yes = false;
    switch (static_cast<Test>(i.small)) {
      case Test::finite: yes = std::isfinite(a[l]); break;
      case Test::infinite: yes = std::isinf(a[l]); break;
      case Test::number: yes = !std::isnan(a[l]); break;
      case Test::notanumber: yes = std::isnan(a[l]); break;
      case Test::normal: yes = std::isnormal(a[l]); break;
      case Test::subnormal: yes = std::fpclassify(a[l]) == FP_SUBNORMAL; break;
    }
    if (yes) result |= 1u << l;
  });
  auto& d = *warp.out<std::uint32_t>(i.d);
  d = (d & ~mask) | result;
  return Flow::next;
}

template <typename Op, unsigned kSources>
Shape shape_of(ScalarType t) {
  Shape shape{nullptr, t, {t, t, t}, kSources};
  if (t == ScalarType::f32) shape.handler = arithmetic<Op, float, kSources>;
  if (t == ScalarType::f64) shape.handler = arithmetic<Op, double, kSources>;
  return shape;
}

template <typename Op>
Shape plain_shape(ScalarType t) {
  return {t == ScalarType::f32 ? plain2<Op, float> : plain2<Op, double>, t, {t, t}, 2};
}

}  // namespace

std::uint8_t float_small(const Opcode& o) {
  if (o.base == "min" || o.base == "max") {
    return static_cast<std::uint8_t>((o.has("ftz") ? 1 : 0) | (o.has("NaN") ? 2 : 0) |
                                     (o.has("xorsign") ? 4 : 0));
  }
  if (o.base == "testp") {
    constexpr std::string_view kTests[] = {"finite",     "infinite", "number",
                                           "notanumber", "normal",   "subnormal"};
    for (std::uint8_t i = 0; i < 6; ++i) {
      if (o.has(kTests[i])) return i;
    }
  }
  Rounding rounding = Rounding::nearest;
  if (o.has("rz")) rounding = Rounding::zero;
  if (o.has("rm")) rounding = Rounding::down;
  if (o.has("rp")) rounding = Rounding::up;
  return static_cast<std::uint8_t>((o.has("ftz") ? kFtz : 0) | (o.has("sat") ? kSat : 0) |
                                   static_cast<unsigned>(rounding) << kRoundShift);
}

Shape float_shape(const Opcode& o) {
  const ScalarType t = o.type();
  if (t != ScalarType::f32 && t != ScalarType::f64) return {};
  if (o.type_count != 1) return {};
  const bool f32 = t == ScalarType::f32;
  if (!o.only({"rn", "rz", "rm", "rp", "ftz", "sat", "approx", "full", "NaN", "xorsign", "abs",
               "finite", "infinite", "number", "notanumber", "normal", "subnormal"})) {
    return {};
  }
  const bool plain = float_small(o) == 0;
  if (o.base == "add") return plain ? plain_shape<Add>(t) : shape_of<Add, 2>(t);
  if (o.base == "sub") return plain ? plain_shape<Sub>(t) : shape_of<Sub, 2>(t);
  if (o.base == "mul") return plain ? plain_shape<Mul>(t) : shape_of<Mul, 2>(t);
  if (o.base == "fma" || o.base == "mad") {
    if (!plain) return shape_of<Fma, 3>(t);
    return {f32 ? fma_handler<float>() : fma_handler<double>(), t, {t, t, t}, 3};
  }
  if (o.base == "div") return shape_of<Div, 2>(t);
  if (o.base == "rcp") return shape_of<Rcp, 1>(t);
  if (o.base == "sqrt") return shape_of<Sqrt, 1>(t);
  if (o.base == "rsqrt") return shape_of<Rsqrt, 1>(t);
  if (o.base == "min") return {f32 ? extreme<false, float> : extreme<false, double>, t, {t, t}, 2};
  if (o.base == "max") return {f32 ? extreme<true, float> : extreme<true, double>, t, {t, t}, 2};
  if (o.base == "abs") return {f32 ? absolute<float> : absolute<double>, t, {t}, 1};
  if (o.base == "neg") return {f32 ? negated<float> : negated<double>, t, {t}, 1};
  if (o.base == "copysign") {
    return {f32 ? binary<CopySign, float, float, float> : binary<CopySign, double, double, double>,
            t, {t, t}, 2};
  }
  if (o.base == "testp") return {f32 ? test<float> : test<double>, ScalarType::pred, {t}, 1};
  if (!f32) return {};
  if (o.base == "sin") return shape_of<Sin, 1>(t);
  if (o.base == "cos") return shape_of<Cos, 1>(t);
  if (o.base == "lg2") return shape_of<Lg2, 1>(t);
  if (o.base == "ex2") return shape_of<Ex2, 1>(t);
  if (o.base == "tanh") return shape_of<Tanh, 1>(t);
  return {};
}

}  // namespace remora::softgpu
