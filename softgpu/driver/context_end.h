// SPDX-License-Identifier: Apache-2.0
// The one call from the driver to its face: a context ends, so what the runtime keeps for it must
// go. The library without a face has nothing to tell.
#pragma once

#include "softgpu/driver/cuda_api.h"

namespace remora::softgpu {

void tell_context_ends(CUcontext context);

}  // namespace remora::softgpu
