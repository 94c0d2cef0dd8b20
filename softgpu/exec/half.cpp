// SPDX-License-Identifier: Apache-2.0
#include "softgpu/exec/half.h"

#include <algorithm>
#include <cmath>

namespace remora::softgpu {
namespace {

/// Rounds to `mantissa_bits` (without the leading one) with exponents from `least` to `greatest`.
std::uint16_t narrow(double value, Rounding rounding, int mantissa_bits, int least, int greatest) {
  const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000 : 0);
  const auto infinity = static_cast<std::uint16_t>((greatest - least + 2) << mantissa_bits);
  if (std::isnan(value)) return 0x7fff;
  if (std::isinf(value)) return static_cast<std::uint16_t>(sign | infinity);
  if (value == 0) return sign;
  int exponent;
  std::frexp(value, &exponent);
  exponent = std::max(exponent - 1, least);
  // In units of the last place; exact, since it only shifts.
  const double scaled = std::ldexp(std::abs(value), mantissa_bits - exponent);
  double whole = std::floor(scaled);
  const double rest = scaled - whole;
  const bool away = sign != 0 ? rounding == Rounding::down : rounding == Rounding::up;
  if (rounding == Rounding::nearest) {
    if (rest > 0.5 || (rest == 0.5 && std::fmod(whole, 2) != 0)) whole += 1;
  } else if (away && rest > 0) {
    whole += 1;
  }
  // A carry into the next exponent falls out of the addition of the fields.
  const auto units = static_cast<std::uint32_t>(whole);
  const std::uint32_t hidden = 1u << mantissa_bits;
  const std::uint32_t bits =
      units < hidden ? units
                     : units - hidden + (static_cast<std::uint32_t>(exponent - least + 1) << mantissa_bits);
  if (bits >= infinity) {
    const bool to_infinity = rounding == Rounding::nearest || away;
    return static_cast<std::uint16_t>(sign | (to_infinity ? infinity : infinity - 1));
  }
  return static_cast<std::uint16_t>(sign | bits);
}

}  // namespace

double half_to_double(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int mantissa = bits & 1023;
  double value;
  if (exponent == 31) {
    value = mantissa != 0 ? NAN : INFINITY;
  } else if (exponent == 0) {
    value = std::ldexp(mantissa, -24);
  } else {
    value = std::ldexp(mantissa + 1024, exponent - 25);
  }
  return bits & 0x8000 ? -value : value;
}

std::uint16_t double_to_half(double value, Rounding rounding) {
  return narrow(value, rounding, 10, -14, 15);
}
std::uint16_t double_to_bfloat(double value, Rounding rounding) {
  return narrow(value, rounding, 7, -126, 127);
}

}  // namespace remora::softgpu
