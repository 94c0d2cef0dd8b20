// SPDX-License-Identifier: Apache-2.0
// Contexts. The current context is the client's thread-local state; a record names the context it
// runs in by the object index in its header.

// The first retain of a device makes its primary context; the client counts the others.
POSTED BY_HAND(client, server) SINCE(7000)
CUresult cuDevicePrimaryCtxRetain(NEW CUcontext *pctx, CUdevice dev);

// The last release.
POSTED BY_HAND(client, server) SINCE(11000)
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev);

LOCAL LOWERED(cuDevicePrimaryCtxRelease_v2) SINCE(7000)
CUresult cuDevicePrimaryCtxRelease(CUdevice dev);

AWAITED BY_HAND(client, server) SINCE(11000)
CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev);

LOCAL LOWERED(cuDevicePrimaryCtxReset_v2) SINCE(7000)
CUresult cuDevicePrimaryCtxReset(CUdevice dev);

LOCAL BY_HAND(client) SINCE(11000)
CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags);

LOCAL LOWERED(cuDevicePrimaryCtxSetFlags_v2) SINCE(7000)
CUresult cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags);

LOCAL BY_HAND(client) SINCE(7000)
CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active);

POSTED BY_HAND(client, server) SINCE(3020)
CUresult cuCtxCreate_v2(NEW CUcontext *pctx, unsigned int flags, CUdevice dev);

LOCAL LOWERED(cuCtxCreate_v2) SINCE(2000)
CUresult cuCtxCreate(CUcontext *pctx, unsigned int flags, CUdevice dev);

// Execution affinity is refused.
POSTED LOWERED(cuCtxCreate_v2) BY_HAND(client) SINCE(11040)
CUresult cuCtxCreate_v3(CUcontext *pctx, CUexecAffinityParam *paramsArray, int numParams,
                        unsigned int flags, CUdevice dev);

POSTED LOWERED(cuCtxCreate_v2) BY_HAND(client) SINCE(12050)
CUresult cuCtxCreate_v4(CUcontext *pctx, CUctxCreateParams *ctxCreateParams, unsigned int flags,
                        CUdevice dev);

AWAITED BY_HAND(client, server) SINCE(4000)
CUresult cuCtxDestroy_v2(CUcontext ctx);

LOCAL LOWERED(cuCtxDestroy_v2) SINCE(2000)
CUresult cuCtxDestroy(CUcontext ctx);

// Of the header's context. Answered without the server when all that was posted is known complete.
AWAITED BY_HAND(client, server) SINCE(2000)
CUresult cuCtxSynchronize(void);

AWAITED LOWERED(cuCtxSynchronize) BY_HAND(client) SINCE(13000)
CUresult cuCtxSynchronize_v2(CUcontext ctx);

AWAITED SINCE(3010)
CUresult cuCtxGetLimit(OUT size_t *pvalue, CUlimit limit);

AWAITED SINCE(3010)
CUresult cuCtxSetLimit(CUlimit limit, size_t value);

LOCAL BY_HAND(client) SINCE(4000)
CUresult cuCtxGetCurrent(CUcontext *pctx);

LOCAL BY_HAND(client) SINCE(4000)
CUresult cuCtxSetCurrent(CUcontext ctx);

LOCAL BY_HAND(client) SINCE(4000)
CUresult cuCtxPushCurrent_v2(CUcontext ctx);

LOCAL LOWERED(cuCtxPushCurrent_v2) SINCE(2000)
CUresult cuCtxPushCurrent(CUcontext ctx);

LOCAL BY_HAND(client) SINCE(4000)
CUresult cuCtxPopCurrent_v2(CUcontext *pctx);

LOCAL LOWERED(cuCtxPopCurrent_v2) SINCE(2000)
CUresult cuCtxPopCurrent(CUcontext *pctx);

LOCAL BY_HAND(client) SINCE(2000)
CUresult cuCtxGetDevice(CUdevice *device);

LOCAL BY_HAND(client) SINCE(13000)
CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext ctx);

LOCAL BY_HAND(client) SINCE(7000)
CUresult cuCtxGetFlags(unsigned int *flags);

LOCAL BY_HAND(client) SINCE(12000)
CUresult cuCtxGetId(CUcontext ctx, unsigned long long *ctxId);

LOCAL BY_HAND(client) SINCE(3020)
CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned int *version);

LOCAL BY_HAND(client) SINCE(5050)
CUresult cuCtxGetStreamPriorityRange(int *leastPriority, int *greatestPriority);

LOCAL BY_HAND(client) SINCE(3020)
CUresult cuCtxGetCacheConfig(CUfunc_cache *pconfig);

LOCAL BY_HAND(client) SINCE(3020)
CUresult cuCtxSetCacheConfig(CUfunc_cache config);

LOCAL BY_HAND(client) SINCE(4020)
CUresult cuCtxGetSharedMemConfig(CUsharedconfig *pConfig);

LOCAL BY_HAND(client) SINCE(4020)
CUresult cuCtxSetSharedMemConfig(CUsharedconfig config);
