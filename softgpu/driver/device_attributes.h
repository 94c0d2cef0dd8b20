// SPDX-License-Identifier: Apache-2.0
// What the software device says of itself. Limits are those of the architecture that it reports;
// features that the engine does not have are reported absent.
#pragma once

#include <cstdint>
#include <map>

#include "base/result.h"

namespace remora::softgpu {

/// REMORA_SOFTGPU_CAPABILITY ("12.1", the default) as 121.
Result<std::uint32_t> capability_from_environment();

/// By CUdevice_attribute; those that are not listed are 0.
std::map<int, int> device_attributes(std::uint32_t capability, unsigned workers, int ordinal);

}  // namespace remora::softgpu
