// SPDX-License-Identifier: Apache-2.0
// Device memory, pinned host memory, and what a pointer is.

// Carved from the session's window. Beyond its committed part the client asks for the reply, so that
// out of memory comes from the call that asked. CUDA refuses size 0.
POSTED BY_HAND(client, server) SINCE(3020)
CUresult cuMemAlloc_v2(NEW_VA(bytesize) CUdeviceptr *dptr, size_t bytesize);

POSTED LOWERED(cuMemAlloc_v2) BY_HAND(client) SINCE(3020)
CUresult cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes, size_t Height,
                            unsigned int ElementSizeBytes);

// Programs use it as a wait: the client first waits until what was posted before has completed.
POSTED BY_HAND(client, server) SINCE(3020)
CUresult cuMemFree_v2(CUdeviceptr dptr);

AWAITED SINCE(3020)
CUresult cuMemGetInfo_v2(OUT size_t *free, OUT size_t *total);

LOCAL BY_HAND(client) SINCE(3020)
CUresult cuMemGetAddressRange_v2(NULLABLE CUdeviceptr *pbase, NULLABLE size_t *psize, CUdeviceptr dptr);

// Pinned host memory is the client's own; the device does not see it (CAN_MAP_HOST_MEMORY is 0).
LOCAL BY_HAND(client) SINCE(2020)
CUresult cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags);

LOCAL BY_HAND(client) SINCE(3020)
CUresult cuMemAllocHost_v2(void **pp, size_t bytesize);

LOCAL BY_HAND(client) SINCE(2000)
CUresult cuMemFreeHost(void *p);

LOCAL BY_HAND(client) SINCE(2030)
CUresult cuMemHostGetFlags(unsigned int *pFlags, void *p);

LOCAL BY_HAND(client) SINCE(6050)
CUresult cuMemHostRegister_v2(void *p, size_t bytesize, unsigned int Flags);

LOCAL BY_HAND(client) SINCE(4000)
CUresult cuMemHostUnregister(void *p);

UNSUPPORTED(CUDA_ERROR_NOT_SUPPORTED) SINCE(3020)
CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *pdptr, void *p, unsigned int Flags);

UNSUPPORTED(CUDA_ERROR_NOT_SUPPORTED) SINCE(6000)
CUresult cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags);

LOCAL BY_HAND(client) SINCE(4000)
CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr);

LOCAL BY_HAND(client) SINCE(7000)
CUresult cuPointerGetAttributes(unsigned int numAttributes, CUpointer_attribute *attributes, void **data,
                                CUdeviceptr ptr);
