// SPDX-License-Identifier: Apache-2.0
// The fundamental types of PTX and what they are made of.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace remora::softgpu {

enum class ScalarType : std::uint8_t {
  none,
  b8,
  b16,
  b32,
  b64,
  b128,
  u8,
  u16,
  u32,
  u64,
  s8,
  s16,
  s32,
  s64,
  f16,
  f16x2,
  bf16,
  bf16x2,
  f32,
  f64,
  pred,
};

/// "f32" (without the dot) to its type.
std::optional<ScalarType> scalar_type(std::string_view name);
std::string_view name_of(ScalarType type);

constexpr std::uint32_t size_bytes(ScalarType type) {
  switch (type) {
    case ScalarType::none:
      return 0;
    case ScalarType::b8:
    case ScalarType::u8:
    case ScalarType::s8:
    case ScalarType::pred:
      return 1;
    case ScalarType::b16:
    case ScalarType::u16:
    case ScalarType::s16:
    case ScalarType::f16:
    case ScalarType::bf16:
      return 2;
    case ScalarType::b32:
    case ScalarType::u32:
    case ScalarType::s32:
    case ScalarType::f32:
    case ScalarType::f16x2:
    case ScalarType::bf16x2:
      return 4;
    case ScalarType::b64:
    case ScalarType::u64:
    case ScalarType::s64:
    case ScalarType::f64:
      return 8;
    case ScalarType::b128:
      return 16;
  }
  return 0;
}

constexpr bool is_signed(ScalarType type) {
  return type >= ScalarType::s8 && type <= ScalarType::s64;
}
constexpr bool is_float(ScalarType type) {
  return type >= ScalarType::f16 && type <= ScalarType::f64;
}
constexpr bool is_bits(ScalarType type) {
  return type >= ScalarType::b8 && type <= ScalarType::b128;
}
constexpr bool is_unsigned(ScalarType type) {
  return type >= ScalarType::u8 && type <= ScalarType::u64;
}

}  // namespace remora::softgpu
