// SPDX-License-Identifier: Apache-2.0
// Launches, and what a program asks or says about its functions. The client packs the parameters by
// the kernel's layout (remora_kernel_facts), whichever way the program passes them.

POSTED BY_HAND(client, server) SINCE(4000) TWIN(_ptsz, 7000)
CUresult cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
                        unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,
                        unsigned int sharedMemBytes, CUstream hStream,
                        KERNEL_PARAMS(f) void **kernelParams, KERNEL_PARAMS(f) void **extra);

POSTED BY_HAND(client, server) SINCE(9000) TWIN(_ptsz, 9000)
CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                                   unsigned int gridDimZ, unsigned int blockDimX,
                                   unsigned int blockDimY, unsigned int blockDimZ,
                                   unsigned int sharedMemBytes, CUstream hStream,
                                   KERNEL_PARAMS(f) void **kernelParams);

POSTED LOWERED(cuLaunchKernel, remora_launch) BY_HAND(client) SINCE(11060) TWIN(_ptsz, 11060)
CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **kernelParams, void **extra);

LOCAL BY_HAND(client) SINCE(2020)
CUresult cuFuncGetAttribute(int *pi, CUfunction_attribute attrib, CUfunction hfunc);

AWAITED BY_HAND(client) SINCE(9000)
CUresult cuFuncSetAttribute(CUfunction hfunc, CUfunction_attribute attrib, int value);

LOCAL BY_HAND(client) SINCE(3000)
CUresult cuFuncSetCacheConfig(CUfunction hfunc, CUfunc_cache config);

LOCAL BY_HAND(client) SINCE(11000)
CUresult cuFuncGetModule(CUmodule *hmod, CUfunction hfunc);

LOCAL BY_HAND(client) SINCE(12030)
CUresult cuFuncGetName(const char **name, CUfunction hfunc);

LOCAL BY_HAND(client) SINCE(12040)
CUresult cuFuncGetParamInfo(CUfunction func, size_t paramIndex, size_t *paramOffset, size_t *paramSize);

AWAITED BY_HAND(client) SINCE(6050)
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(OUT int *numBlocks, CUfunction func, int blockSize,
                                                     size_t dynamicSMemSize);

AWAITED BY_HAND(client) SINCE(7000)
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(OUT int *numBlocks, CUfunction func,
                                                              int blockSize, size_t dynamicSMemSize,
                                                              unsigned int flags);

AWAITED SINCE(10020)
CUresult cuOccupancyAvailableDynamicSMemPerBlock(OUT size_t *dynamicSmemSize, CUfunction func,
                                                 int numBlocks, int blockSize);
