// SPDX-License-Identifier: Apache-2.0
// binary16 and bfloat16, by their bits: the compiler has no such types for C++ everywhere.
#pragma once

#include <bit>
#include <cstdint>

#include "softgpu/exec/opcode.h"

namespace remora::softgpu {

double half_to_double(std::uint16_t bits);
inline float bfloat_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}
/// One rounding from the exact value, subnormals included; NaN becomes 0x7fff.
std::uint16_t double_to_half(double value, Rounding rounding);
std::uint16_t double_to_bfloat(double value, Rounding rounding);

}  // namespace remora::softgpu
