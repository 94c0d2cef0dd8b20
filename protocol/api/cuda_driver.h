// SPDX-License-Identifier: Apache-2.0
// <cuda.h> with every form of every call declared under its own ELF name (cuMemAlloc_v2, not
// cuMemAlloc by macro). Everything in this project that names driver calls includes this and never
// <cuda.h>: CallId::cuCtxCreate must not silently become CallId::cuCtxCreate_v4.
#ifndef REMORA_PROTOCOL_API_CUDA_DRIVER_H
#define REMORA_PROTOCOL_API_CUDA_DRIVER_H

#if defined(__cuda_cuda_h__) && !defined(__CUDA_API_VERSION_INTERNAL)
#error "include protocol/api/cuda_driver.h before anything that includes cuda.h"
#endif
#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL
#endif
#include <cuda.h>

#endif
