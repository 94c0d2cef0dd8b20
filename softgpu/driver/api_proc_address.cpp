// SPDX-License-Identifier: Apache-2.0
// cuGetProcAddress: which form of a call answers to a name for a program of a given CUDA version.
// What is not in this table is not there; nothing is ever answered by a function that only refuses.
#include <algorithm>
#include <string_view>

#include "softgpu/driver/entry.h"

using namespace remora::softgpu;

// Forms that the header declares only for programs of other compile modes.
#define REMORA_DECLARE_TWIN(name) extern "C" CUresult name();
extern "C" {
CUresult CUDAAPI cuGetProcAddress_v2(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);
CUresult CUDAAPI cuGetProcAddress(const char*, void**, int, cuuint64_t);
CUresult CUDAAPI cuGetExportTable(const void**, const CUuuid*);
}

namespace {

struct Form {
  std::string_view name;
  int since;      // the first CUDA version that gets it
  void* function;
  void* twin;     // with a per-thread default stream; null when there is none
  int twin_since;
};

#define F(name, since, function) {#name, since, reinterpret_cast<void*>(&function), nullptr, 0}
#define T(name, since, function, suffix, twin_since) \
  {#name, since, reinterpret_cast<void*>(&function), reinterpret_cast<void*>(&function##suffix), twin_since}

const Form kForms[] = {
    F(cuInit, 2000, cuInit),
    F(cuDriverGetVersion, 2020, cuDriverGetVersion),
    F(cuGetProcAddress, 11030, cuGetProcAddress),
    F(cuGetProcAddress, 12000, cuGetProcAddress_v2),
    F(cuGetExportTable, 3000, cuGetExportTable),
    F(cuGetErrorName, 6000, cuGetErrorName),
    F(cuGetErrorString, 6000, cuGetErrorString),
    F(cuDeviceGet, 2000, cuDeviceGet),
    F(cuDeviceGetCount, 2000, cuDeviceGetCount),
    F(cuDeviceGetName, 2000, cuDeviceGetName),
    F(cuDeviceTotalMem, 3020, cuDeviceTotalMem_v2),
    F(cuDeviceGetAttribute, 2000, cuDeviceGetAttribute),
    F(cuDeviceGetUuid, 9020, cuDeviceGetUuid),
    F(cuDeviceGetUuid, 11040, cuDeviceGetUuid_v2),
    F(cuDeviceGetPCIBusId, 4010, cuDeviceGetPCIBusId),
    F(cuDeviceGetByPCIBusId, 4010, cuDeviceGetByPCIBusId),
    F(cuDeviceCanAccessPeer, 4000, cuDeviceCanAccessPeer),
    F(cuDeviceGetP2PAttribute, 8000, cuDeviceGetP2PAttribute),
    F(cuDevicePrimaryCtxRetain, 7000, cuDevicePrimaryCtxRetain),
    F(cuDevicePrimaryCtxRelease, 7000, cuDevicePrimaryCtxRelease),
    F(cuDevicePrimaryCtxRelease, 11000, cuDevicePrimaryCtxRelease_v2),
    F(cuDevicePrimaryCtxReset, 7000, cuDevicePrimaryCtxReset),
    F(cuDevicePrimaryCtxReset, 11000, cuDevicePrimaryCtxReset_v2),
    F(cuDevicePrimaryCtxSetFlags, 7000, cuDevicePrimaryCtxSetFlags),
    F(cuDevicePrimaryCtxSetFlags, 11000, cuDevicePrimaryCtxSetFlags_v2),
    F(cuDevicePrimaryCtxGetState, 7000, cuDevicePrimaryCtxGetState),
    F(cuCtxCreate, 3020, cuCtxCreate_v2),
    F(cuCtxCreate, 12050, cuCtxCreate_v4),
    F(cuCtxDestroy, 4000, cuCtxDestroy_v2),
    F(cuCtxSynchronize, 2000, cuCtxSynchronize),
    F(cuCtxSynchronize, 13000, cuCtxSynchronize_v2),
    F(cuCtxGetLimit, 3010, cuCtxGetLimit),
    F(cuCtxSetLimit, 3010, cuCtxSetLimit),
    F(cuCtxGetCurrent, 4000, cuCtxGetCurrent),
    F(cuCtxSetCurrent, 4000, cuCtxSetCurrent),
    F(cuCtxPushCurrent, 4000, cuCtxPushCurrent_v2),
    F(cuCtxPopCurrent, 4000, cuCtxPopCurrent_v2),
    F(cuCtxGetDevice, 2000, cuCtxGetDevice),
    F(cuCtxGetDevice, 13000, cuCtxGetDevice_v2),
    F(cuCtxGetFlags, 7000, cuCtxGetFlags),
    F(cuCtxGetId, 12000, cuCtxGetId),
    F(cuCtxGetApiVersion, 3020, cuCtxGetApiVersion),
    F(cuCtxGetStreamPriorityRange, 5050, cuCtxGetStreamPriorityRange),
    F(cuCtxGetCacheConfig, 3020, cuCtxGetCacheConfig),
    F(cuCtxSetCacheConfig, 3020, cuCtxSetCacheConfig),
    F(cuCtxGetSharedMemConfig, 4020, cuCtxGetSharedMemConfig),
    F(cuCtxSetSharedMemConfig, 4020, cuCtxSetSharedMemConfig),
    F(cuMemAlloc, 3020, cuMemAlloc_v2),
    F(cuMemAllocPitch, 3020, cuMemAllocPitch_v2),
    F(cuMemFree, 3020, cuMemFree_v2),
    F(cuMemGetInfo, 3020, cuMemGetInfo_v2),
    F(cuMemGetAddressRange, 3020, cuMemGetAddressRange_v2),
    F(cuMemHostAlloc, 2020, cuMemHostAlloc),
    F(cuMemAllocHost, 3020, cuMemAllocHost_v2),
    F(cuMemFreeHost, 2000, cuMemFreeHost),
    F(cuMemHostGetFlags, 2030, cuMemHostGetFlags),
    F(cuMemHostGetDevicePointer, 3020, cuMemHostGetDevicePointer_v2),
    F(cuMemHostRegister, 6050, cuMemHostRegister_v2),
    F(cuMemHostUnregister, 4000, cuMemHostUnregister),
    F(cuPointerGetAttribute, 4000, cuPointerGetAttribute),
    F(cuPointerGetAttributes, 7000, cuPointerGetAttributes),
    F(cuMemGetAllocationGranularity, 10020, cuMemGetAllocationGranularity),
    F(cuMemAddressReserve, 10020, cuMemAddressReserve),
    F(cuMemAddressFree, 10020, cuMemAddressFree),
    F(cuMemCreate, 10020, cuMemCreate),
    F(cuMemRelease, 10020, cuMemRelease),
    F(cuMemMap, 10020, cuMemMap),
    F(cuMemUnmap, 10020, cuMemUnmap),
    F(cuMemSetAccess, 10020, cuMemSetAccess),
    T(cuMemcpyHtoD, 3020, cuMemcpyHtoD_v2, _ptds, 7000),
    T(cuMemcpyDtoH, 3020, cuMemcpyDtoH_v2, _ptds, 7000),
    T(cuMemcpyDtoD, 3020, cuMemcpyDtoD_v2, _ptds, 7000),
    T(cuMemcpy, 4000, cuMemcpy, _ptds, 7000),
    T(cuMemcpyHtoDAsync, 3020, cuMemcpyHtoDAsync_v2, _ptsz, 7000),
    T(cuMemcpyDtoHAsync, 3020, cuMemcpyDtoHAsync_v2, _ptsz, 7000),
    T(cuMemcpyDtoDAsync, 3020, cuMemcpyDtoDAsync_v2, _ptsz, 7000),
    T(cuMemcpyAsync, 4000, cuMemcpyAsync, _ptsz, 7000),
    T(cuMemcpy2D, 3020, cuMemcpy2D_v2, _ptds, 7000),
    T(cuMemcpy2DUnaligned, 3020, cuMemcpy2DUnaligned_v2, _ptds, 7000),
    T(cuMemcpy2DAsync, 3020, cuMemcpy2DAsync_v2, _ptsz, 7000),
    T(cuMemcpy3D, 3020, cuMemcpy3D_v2, _ptds, 7000),
    T(cuMemcpy3DAsync, 3020, cuMemcpy3DAsync_v2, _ptsz, 7000),
    T(cuMemsetD8, 3020, cuMemsetD8_v2, _ptds, 7000),
    T(cuMemsetD16, 3020, cuMemsetD16_v2, _ptds, 7000),
    T(cuMemsetD32, 3020, cuMemsetD32_v2, _ptds, 7000),
    T(cuMemsetD8Async, 3020, cuMemsetD8Async, _ptsz, 7000),
    T(cuMemsetD16Async, 3020, cuMemsetD16Async, _ptsz, 7000),
    T(cuMemsetD32Async, 3020, cuMemsetD32Async, _ptsz, 7000),
    T(cuMemsetD2D8, 3020, cuMemsetD2D8_v2, _ptds, 7000),
    T(cuMemsetD2D16, 3020, cuMemsetD2D16_v2, _ptds, 7000),
    T(cuMemsetD2D32, 3020, cuMemsetD2D32_v2, _ptds, 7000),
    T(cuMemsetD2D8Async, 3020, cuMemsetD2D8Async, _ptsz, 7000),
    T(cuMemsetD2D16Async, 3020, cuMemsetD2D16Async, _ptsz, 7000),
    T(cuMemsetD2D32Async, 3020, cuMemsetD2D32Async, _ptsz, 7000),
    F(cuModuleLoad, 2000, cuModuleLoad),
    F(cuModuleLoadData, 2000, cuModuleLoadData),
    F(cuModuleLoadDataEx, 2010, cuModuleLoadDataEx),
    F(cuModuleLoadFatBinary, 2000, cuModuleLoadFatBinary),
    F(cuModuleUnload, 2000, cuModuleUnload),
    F(cuModuleGetFunction, 2000, cuModuleGetFunction),
    F(cuModuleGetGlobal, 3020, cuModuleGetGlobal_v2),
    F(cuModuleGetLoadingMode, 11070, cuModuleGetLoadingMode),
    F(cuModuleGetFunctionCount, 12040, cuModuleGetFunctionCount),
    F(cuModuleEnumerateFunctions, 12040, cuModuleEnumerateFunctions),
    F(cuLibraryLoadData, 12000, cuLibraryLoadData),
    F(cuLibraryLoadFromFile, 12000, cuLibraryLoadFromFile),
    F(cuLibraryUnload, 12000, cuLibraryUnload),
    F(cuLibraryGetKernel, 12000, cuLibraryGetKernel),
    F(cuLibraryGetKernelCount, 12040, cuLibraryGetKernelCount),
    F(cuLibraryEnumerateKernels, 12040, cuLibraryEnumerateKernels),
    F(cuLibraryGetModule, 12000, cuLibraryGetModule),
    F(cuLibraryGetGlobal, 12000, cuLibraryGetGlobal),
    F(cuKernelGetFunction, 12000, cuKernelGetFunction),
    F(cuKernelGetLibrary, 12050, cuKernelGetLibrary),
    F(cuKernelGetName, 12030, cuKernelGetName),
    F(cuKernelGetParamInfo, 12040, cuKernelGetParamInfo),
    F(cuKernelGetAttribute, 12000, cuKernelGetAttribute),
    F(cuKernelSetAttribute, 12000, cuKernelSetAttribute),
    F(cuKernelSetCacheConfig, 12000, cuKernelSetCacheConfig),
    F(cuFuncGetAttribute, 2020, cuFuncGetAttribute),
    F(cuFuncSetAttribute, 9000, cuFuncSetAttribute),
    F(cuFuncSetCacheConfig, 3000, cuFuncSetCacheConfig),
    F(cuFuncGetModule, 11000, cuFuncGetModule),
    F(cuFuncGetName, 12030, cuFuncGetName),
    F(cuFuncGetParamInfo, 12040, cuFuncGetParamInfo),
    F(cuFuncLoad, 12040, cuFuncLoad),
    F(cuFuncIsLoaded, 12040, cuFuncIsLoaded),
    T(cuLaunchKernel, 4000, cuLaunchKernel, _ptsz, 7000),
    T(cuLaunchCooperativeKernel, 9000, cuLaunchCooperativeKernel, _ptsz, 9000),
    T(cuLaunchKernelEx, 11060, cuLaunchKernelEx, _ptsz, 11060),
    T(cuLaunchHostFunc, 10000, cuLaunchHostFunc, _ptsz, 10000),
    F(cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050, cuOccupancyMaxActiveBlocksPerMultiprocessor),
    F(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, 7000,
      cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags),
    F(cuOccupancyAvailableDynamicSMemPerBlock, 10020, cuOccupancyAvailableDynamicSMemPerBlock),
    F(cuStreamCreate, 2000, cuStreamCreate),
    F(cuStreamCreateWithPriority, 5050, cuStreamCreateWithPriority),
    F(cuStreamDestroy, 4000, cuStreamDestroy_v2),
    T(cuStreamWaitEvent, 3020, cuStreamWaitEvent, _ptsz, 7000),
    T(cuStreamSynchronize, 2000, cuStreamSynchronize, _ptsz, 7000),
    T(cuStreamQuery, 2000, cuStreamQuery, _ptsz, 7000),
    T(cuStreamAddCallback, 5000, cuStreamAddCallback, _ptsz, 7000),
    F(cuStreamGetPriority, 5050, cuStreamGetPriority),
    F(cuStreamGetFlags, 5050, cuStreamGetFlags),
    F(cuStreamGetCtx, 9020, cuStreamGetCtx),
    F(cuStreamGetId, 12000, cuStreamGetId),
    F(cuStreamGetDevice, 12080, cuStreamGetDevice),
    F(cuStreamIsCapturing, 10000, cuStreamIsCapturing),
    F(cuEventCreate, 2000, cuEventCreate),
    F(cuEventDestroy, 4000, cuEventDestroy_v2),
    T(cuEventRecord, 2000, cuEventRecord, _ptsz, 7000),
    T(cuEventRecordWithFlags, 11010, cuEventRecordWithFlags, _ptsz, 11010),
    F(cuEventQuery, 2000, cuEventQuery),
    F(cuEventSynchronize, 2000, cuEventSynchronize),
    F(cuEventElapsedTime, 2000, cuEventElapsedTime),
    F(cuEventElapsedTime, 12080, cuEventElapsedTime_v2),
};
#undef F
#undef T

CUresult look_up(const char* symbol, void** function, int version, cuuint64_t flags,
                 CUdriverProcAddressQueryResult* status) {
  REMORA_REQUIRE(symbol != nullptr && function != nullptr);
  *function = nullptr;
  const bool per_thread = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  const Form* best = nullptr;
  bool known = false;
  for (const Form& form : kForms) {
    if (form.name != symbol) continue;
    known = true;
    if (form.since <= version && (best == nullptr || form.since > best->since)) best = &form;
  }
  if (best == nullptr) {
    if (status != nullptr) {
      *status = known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    }
    return CUDA_ERROR_NOT_FOUND;
  }
  *function = per_thread && best->twin != nullptr && version >= best->twin_since ? best->twin
                                                                               : best->function;
  if (status != nullptr) *status = CU_GET_PROC_ADDRESS_SUCCESS;
  return CUDA_SUCCESS;
}

}  // namespace

REMORA_API(cuGetProcAddress)(const char* symbol, void** function, int version, cuuint64_t flags) {
  return look_up(symbol, function, version, flags, nullptr);
}
REMORA_API(cuGetProcAddress_v2)(const char* symbol, void** function, int version, cuuint64_t flags,
                                CUdriverProcAddressQueryResult* status) {
  return look_up(symbol, function, version, flags, status);
}
