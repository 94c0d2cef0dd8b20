// SPDX-License-Identifier: Apache-2.0
// Streams. The default streams are objects like others: the client makes a context's legacy stream
// with remora_legacy_stream and a thread's own with cuStreamCreate, and names them in records.

POSTED BY_HAND(client, server) SINCE(2000)
CUresult cuStreamCreate(NEW CUstream *phStream, unsigned int Flags);

POSTED BY_HAND(client, server) SINCE(5050)
CUresult cuStreamCreateWithPriority(NEW CUstream *phStream, unsigned int flags, int priority);

POSTED BY_HAND(client, server) SINCE(4000)
CUresult cuStreamDestroy_v2(CUstream hStream);

LOCAL LOWERED(cuStreamDestroy_v2) SINCE(2000)
CUresult cuStreamDestroy(CUstream hStream);

POSTED BY_HAND(server) SINCE(3020) TWIN(_ptsz, 7000)
CUresult cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags);

// Answered without the server when the pushed progress already covers what was posted.
AWAITED BY_HAND(client, server) SINCE(2000) TWIN(_ptsz, 7000)
CUresult cuStreamSynchronize(CUstream hStream);

LOCAL BY_HAND(client) SINCE(2000) TWIN(_ptsz, 7000)
CUresult cuStreamQuery(CUstream hStream);

LOCAL BY_HAND(client) SINCE(5050) TWIN(_ptsz, 7000)
CUresult cuStreamGetPriority(CUstream hStream, int *priority);

LOCAL BY_HAND(client) SINCE(5050) TWIN(_ptsz, 7000)
CUresult cuStreamGetFlags(CUstream hStream, unsigned int *flags);

LOCAL BY_HAND(client) SINCE(9020) TWIN(_ptsz, 9020)
CUresult cuStreamGetCtx(CUstream hStream, CUcontext *pctx);

LOCAL BY_HAND(client) SINCE(12050) TWIN(_ptsz, 12050)
CUresult cuStreamGetCtx_v2(CUstream hStream, CUcontext *pCtx, CUgreenCtx *pGreenCtx);

LOCAL BY_HAND(client) SINCE(12000) TWIN(_ptsz, 12000)
CUresult cuStreamGetId(CUstream hStream, unsigned long long *streamId);

LOCAL BY_HAND(client) SINCE(12080) TWIN(_ptsz, 12080)
CUresult cuStreamGetDevice(CUstream hStream, CUdevice *device);

// No stream is ever capturing, since capture is refused.
LOCAL BY_HAND(client) SINCE(10000) TWIN(_ptsz, 10000)
CUresult cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus *captureStatus);
