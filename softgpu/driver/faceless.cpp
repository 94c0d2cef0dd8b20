// SPDX-License-Identifier: Apache-2.0
// The software GPU as a driver for Remora's server, which asks for no private tables.
#include "softgpu/driver/context_end.h"
#include "softgpu/driver/entry.h"

namespace remora::softgpu {

void tell_context_ends(CUcontext) {}

}  // namespace remora::softgpu

REMORA_API(cuGetExportTable)(const void** table, const CUuuid*) {
  REMORA_REQUIRE(table != nullptr);
  *table = nullptr;
  return CUDA_ERROR_INVALID_VALUE;
}
