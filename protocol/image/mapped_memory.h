// SPDX-License-Identifier: Apache-2.0
// Asks the kernel how far memory is mapped, so that reading a garbage image with a garbage length
// ends in an error instead of a fault.
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace remora::image {

/// The part of [start, start + most_bytes) that is mapped without a gap from `start` on.
Bytes mapped_prefix(const void* start, std::uint64_t most_bytes);

}  // namespace remora::image
