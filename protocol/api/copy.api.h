// SPDX-License-Identifier: Apache-2.0
// Copies and fills. A record always names its stream, so the forms without one, which run on a
// default stream, are lowered to the forms with one; the client waits where CUDA waits.

// Pageable memory: returns when the bytes are out of the caller's buffer.
POSTED BY_HAND(client, server) SINCE(3020) TWIN(_ptsz, 7000)
CUresult cuMemcpyHtoDAsync_v2(DEVICE_WRITE(ByteCount) CUdeviceptr dstDevice,
                              BULK_IN(ByteCount) const void *srcHost, size_t ByteCount,
                              CUstream hStream);

// The client asks for the reply when the bytes travel in it, or when the memory is pageable.
POSTED BY_HAND(client, server) SINCE(3020) TWIN(_ptsz, 7000)
CUresult cuMemcpyDtoHAsync_v2(BULK_OUT(ByteCount) void *dstHost,
                              DEVICE_READ(ByteCount) CUdeviceptr srcDevice, size_t ByteCount,
                              CUstream hStream);

POSTED SINCE(3020) TWIN(_ptsz, 7000)
CUresult cuMemcpyDtoDAsync_v2(DEVICE_WRITE(ByteCount) CUdeviceptr dstDevice,
                              DEVICE_READ(ByteCount) CUdeviceptr srcDevice, size_t ByteCount,
                              CUstream hStream);

POSTED LOWERED(cuMemcpyHtoDAsync_v2) BY_HAND(client) SINCE(3020) TWIN(_ptds, 7000)
CUresult cuMemcpyHtoD_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount);

AWAITED LOWERED(cuMemcpyDtoHAsync_v2) BY_HAND(client) SINCE(3020) TWIN(_ptds, 7000)
CUresult cuMemcpyDtoH_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount);

POSTED LOWERED(cuMemcpyDtoDAsync_v2) BY_HAND(client) SINCE(3020) TWIN(_ptds, 7000)
CUresult cuMemcpyDtoD_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount);

// The two pointers say which copy it is: each is looked up in the pointer map.
POSTED LOWERED(cuMemcpyHtoDAsync_v2, cuMemcpyDtoHAsync_v2, cuMemcpyDtoDAsync_v2) BY_HAND(client)
SINCE(4000) TWIN(_ptds, 7000)
CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount);

POSTED LOWERED(cuMemcpyHtoDAsync_v2, cuMemcpyDtoHAsync_v2, cuMemcpyDtoDAsync_v2) BY_HAND(client)
SINCE(4000) TWIN(_ptsz, 7000)
CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream);

POSTED SINCE(3020) TWIN(_ptsz, 7000)
CUresult cuMemsetD8Async(DEVICE_WRITE(N) CUdeviceptr dstDevice, unsigned char uc, size_t N,
                         CUstream hStream);

POSTED SINCE(3020) TWIN(_ptsz, 7000)
CUresult cuMemsetD16Async(DEVICE_WRITE(N * 2) CUdeviceptr dstDevice, unsigned short us, size_t N,
                          CUstream hStream);

POSTED SINCE(3020) TWIN(_ptsz, 7000)
CUresult cuMemsetD32Async(DEVICE_WRITE(N * 4) CUdeviceptr dstDevice, unsigned int ui, size_t N,
                          CUstream hStream);

POSTED LOWERED(cuMemsetD8Async) BY_HAND(client) SINCE(3020) TWIN(_ptds, 7000)
CUresult cuMemsetD8_v2(CUdeviceptr dstDevice, unsigned char uc, size_t N);

POSTED LOWERED(cuMemsetD16Async) BY_HAND(client) SINCE(3020) TWIN(_ptds, 7000)
CUresult cuMemsetD16_v2(CUdeviceptr dstDevice, unsigned short us, size_t N);

POSTED LOWERED(cuMemsetD32Async) BY_HAND(client) SINCE(3020) TWIN(_ptds, 7000)
CUresult cuMemsetD32_v2(CUdeviceptr dstDevice, unsigned int ui, size_t N);
