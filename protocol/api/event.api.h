// SPDX-License-Identifier: Apache-2.0
// Events. Their completion and their times are pushed (remora_event_done); queries read what came.

POSTED BY_HAND(client, server) SINCE(2000)
CUresult cuEventCreate(NEW CUevent *phEvent, unsigned int Flags);

POSTED BY_HAND(client, server) SINCE(2000) TWIN(_ptsz, 7000)
CUresult cuEventRecord(CUevent hEvent, CUstream hStream);

POSTED BY_HAND(client, server) SINCE(11010) TWIN(_ptsz, 11010)
CUresult cuEventRecordWithFlags(CUevent hEvent, CUstream hStream, unsigned int flags);

POSTED BY_HAND(client, server) SINCE(4000)
CUresult cuEventDestroy_v2(CUevent hEvent);

LOCAL LOWERED(cuEventDestroy_v2) SINCE(2000)
CUresult cuEventDestroy(CUevent hEvent);

LOCAL BY_HAND(client) SINCE(2000)
CUresult cuEventQuery(CUevent hEvent);

// Waits for the pushed completion; asks for nothing.
LOCAL BY_HAND(client) SINCE(2000)
CUresult cuEventSynchronize(CUevent hEvent);

LOCAL BY_HAND(client) SINCE(2000)
CUresult cuEventElapsedTime(float *pMilliseconds, CUevent hStart, CUevent hEnd);

LOCAL BY_HAND(client) SINCE(12080)
CUresult cuEventElapsedTime_v2(float *pMilliseconds, CUevent hStart, CUevent hEnd);
