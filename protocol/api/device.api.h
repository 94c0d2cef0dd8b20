// SPDX-License-Identifier: Apache-2.0
// Start-up, devices and look-up of entry points: all answered from what the session offered at
// connect (SessionOffer).

LOCAL BY_HAND(client) SINCE(2000)
CUresult cuInit(unsigned int Flags);

LOCAL BY_HAND(client) SINCE(2020)
CUresult cuDriverGetVersion(int *driverVersion);

LOCAL BY_HAND(client) SINCE(11030)
CUresult cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags);

LOCAL BY_HAND(client) SINCE(12000)
CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *symbolStatus);

LOCAL BY_HAND(client) SINCE(3000)
CUresult cuGetExportTable(const void **ppExportTable, const CUuuid *pExportTableId);

LOCAL BY_HAND(client) SINCE(6000)
CUresult cuGetErrorName(CUresult error, const char **pStr);

LOCAL BY_HAND(client) SINCE(6000)
CUresult cuGetErrorString(CUresult error, const char **pStr);

LOCAL BY_HAND(client) SINCE(2000)
CUresult cuDeviceGet(CUdevice *device, int ordinal);

LOCAL BY_HAND(client) SINCE(2000)
CUresult cuDeviceGetCount(int *count);

LOCAL BY_HAND(client) SINCE(2000)
CUresult cuDeviceGetName(char *name, int len, CUdevice dev);

LOCAL BY_HAND(client) SINCE(3020)
CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev);

LOCAL BY_HAND(client) SINCE(2000)
CUresult cuDeviceGetAttribute(int *pi, CUdevice_attribute attrib, CUdevice dev);

LOCAL BY_HAND(client) SINCE(9020)
CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice dev);

LOCAL BY_HAND(client) SINCE(11040)
CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev);

LOCAL BY_HAND(client) SINCE(4010)
CUresult cuDeviceGetByPCIBusId(CUdevice *dev, const char *pciBusId);

LOCAL BY_HAND(client) SINCE(4010)
CUresult cuDeviceGetPCIBusId(char *pciBusId, int len, CUdevice dev);

LOCAL BY_HAND(client) SINCE(4000)
CUresult cuDeviceCanAccessPeer(int *canAccessPeer, CUdevice dev, CUdevice peerDev);

LOCAL BY_HAND(client) SINCE(8000)
CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attrib, CUdevice srcDevice,
                                 CUdevice dstDevice);
