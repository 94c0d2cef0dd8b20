// SPDX-License-Identifier: Apache-2.0
// <cuda.h> with every form of every call under its own ELF name (cuMemAlloc_v2, not cuMemAlloc by
// macro), and how an entry point is written: REMORA_API(cuInit)(unsigned int flags) {…}. The build
// finds the entries by that word; every other name of cuda.h is exported as a refusal.
#pragma once

#if defined(__cuda_cuda_h__) && !defined(__CUDA_API_VERSION_INTERNAL)
#error "include softgpu/driver/cuda_api.h before anything that includes cuda.h"
#endif
#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL
#endif
#include <cuda.h>

#define REMORA_API(name) extern "C" __attribute__((visibility("default"))) CUresult CUDAAPI name
