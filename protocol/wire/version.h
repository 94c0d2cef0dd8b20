// SPDX-License-Identifier: Apache-2.0
// The number that both ends must share. It rises when the meaning of existing bytes changes; new
// records and new feature bits do not change it.
#pragma once

#include <cstdint>

namespace remora::protocol {

inline constexpr std::uint16_t kProtocolVersion = 1;

}  // namespace remora::protocol
