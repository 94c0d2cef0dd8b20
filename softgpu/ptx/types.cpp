// SPDX-License-Identifier: Apache-2.0
#include "softgpu/ptx/types.h"

#include <array>

namespace remora::softgpu {
namespace {

constexpr std::array<std::string_view, 21> kNames = {
    "none", "b8",  "b16", "b32", "b64",   "b128", "u8",     "u16", "u32", "u64", "s8",
    "s16",  "s32", "s64", "f16", "f16x2", "bf16", "bf16x2", "f32", "f64", "pred"};

}  // namespace

std::optional<ScalarType> scalar_type(std::string_view name) {
  for (std::size_t i = 1; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<ScalarType>(i);
  }
  return std::nullopt;
}

std::string_view name_of(ScalarType type) { return kNames[static_cast<std::size_t>(type)]; }

}  // namespace remora::softgpu
