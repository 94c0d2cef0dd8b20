// SPDX-License-Identifier: Apache-2.0
// Allocation, pointers, virtual memory management.
#include <algorithm>
#include <bit>

#include "base/bytes.h"
#include "softgpu/driver/entry.h"

using namespace remora::softgpu;

REMORA_API(cuMemAlloc_v2)(CUdeviceptr* address, std::size_t size) {
  REMORA_REQUIRE(address != nullptr);
  REMORA_USE_CONTEXT(context);
  std::uint64_t begin = 0;
  if (const CUresult result = address_space().allocate(context->device->ordinal, size, begin)) return result;
  *address = begin;
  return CUDA_SUCCESS;
}

REMORA_API(cuMemAllocPitch_v2)(CUdeviceptr* address, std::size_t* pitch, std::size_t width,
                               std::size_t height, unsigned int element_bytes) {
  REMORA_REQUIRE(address != nullptr && pitch != nullptr && width != 0 && height != 0);
  REMORA_REQUIRE(element_bytes == 4 || element_bytes == 8 || element_bytes == 16);
  const std::size_t row = remora::align_up(width, 512);
  const auto size = remora::checked_product(row, height);
  if (!size) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result = cuMemAlloc_v2(address, *size);
  if (result == CUDA_SUCCESS) *pitch = row;
  return result;
}

REMORA_API(cuMemFree_v2)(CUdeviceptr address) {
  REMORA_USE_CONTEXT(context);
  if (address == 0) return CUDA_SUCCESS;
  quiesce();  // work that is under way may use it
  if (const CUresult result = context->failed.load()) return result;
  return address_space().release(address);
}

REMORA_API(cuMemGetInfo_v2)(std::size_t* free, std::size_t* total) {
  REMORA_REQUIRE(free != nullptr && total != nullptr);
  REMORA_USE_CONTEXT(context);
  *free = address_space().free_bytes(context->device->ordinal);
  *total = address_space().capacity();
  return CUDA_SUCCESS;
}

REMORA_API(cuMemGetAddressRange_v2)(CUdeviceptr* base, std::size_t* size, CUdeviceptr address) {
  REMORA_USE_CONTEXT(context);
  const auto range = address_space().range_of(address);
  if (!range) return CUDA_ERROR_NOT_FOUND;
  if (base != nullptr) *base = range->begin;
  if (size != nullptr) *size = range->size;
  return CUDA_SUCCESS;
}

// --- Host memory -------------------------------------------------------------------------------

REMORA_API(cuMemHostAlloc)(void** address, std::size_t size, unsigned int flags) {
  REMORA_REQUIRE(address != nullptr && (flags & ~7u) == 0);
  REMORA_USE_CONTEXT(context);
  return address_space().allocate_host(context->device->ordinal, size, flags, *address);
}
REMORA_API(cuMemAllocHost_v2)(void** address, std::size_t size) {
  return cuMemHostAlloc(address, size, 0);
}
REMORA_API(cuMemFreeHost)(void* address) {
  REMORA_USE_CONTEXT(context);
  if (address == nullptr) return CUDA_ERROR_INVALID_VALUE;
  quiesce();
  if (const CUresult result = context->failed.load()) return result;
  return address_space().release_host(address);
}
REMORA_API(cuMemHostGetFlags)(unsigned int* flags, void* address) {
  REMORA_REQUIRE(flags != nullptr);
  REMORA_USE_CONTEXT(context);
  const auto range = address_space().range_of(reinterpret_cast<std::uint64_t>(address));
  REMORA_REQUIRE(range && range->kind == AddressSpace::Kind::host_allocated);
  *flags = range->flags | CU_MEMHOSTALLOC_DEVICEMAP;
  return CUDA_SUCCESS;
}
REMORA_API(cuMemHostGetDevicePointer_v2)(CUdeviceptr* device_address, void* address,
                                         unsigned int flags) {
  REMORA_REQUIRE(device_address != nullptr && flags == 0);
  REMORA_USE_CONTEXT(context);
  const auto range = address_space().range_of(reinterpret_cast<std::uint64_t>(address));
  REMORA_REQUIRE(range && range->is_host());
  *device_address = reinterpret_cast<CUdeviceptr>(address);
  return CUDA_SUCCESS;
}
REMORA_API(cuMemHostRegister_v2)(void* address, std::size_t size, unsigned int flags) {
  REMORA_USE_CONTEXT(context);
  return address_space().register_host(context->device->ordinal, address, size, flags);
}
REMORA_API(cuMemHostUnregister)(void* address) {
  REMORA_USE_CONTEXT(context);
  quiesce();
  if (const CUresult result = context->failed.load()) return result;
  return address_space().unregister_host(address);
}

// --- What a pointer is -------------------------------------------------------------------------

namespace {

CUresult pointer_attribute(Context& context, void* data, CUpointer_attribute attribute,
                           CUdeviceptr address) {
  const auto range = address_space().range_of(address);
  if (!range) return CUDA_ERROR_INVALID_VALUE;
  const bool host = range->is_host();
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      *static_cast<CUcontext*>(data) = reinterpret_cast<CUcontext>(&context);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      *static_cast<unsigned*>(data) = host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      *static_cast<CUdeviceptr*>(data) = address;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (!host) return CUDA_ERROR_INVALID_VALUE;
      *static_cast<void**>(data) = reinterpret_cast<void*>(address);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      *static_cast<unsigned long long*>(data) = range->id;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      *static_cast<unsigned*>(data) = 0;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      *static_cast<int*>(data) = context.device->ordinal;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      *static_cast<CUdeviceptr*>(data) = range->begin;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      *static_cast<std::size_t*>(data) = range->size;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPED:
      *static_cast<unsigned*>(data) = 1;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

std::size_t attribute_bytes(CUpointer_attribute attribute) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return 4;
    default:
      return 8;
  }
}

}  // namespace

REMORA_API(cuPointerGetAttribute)(void* data, CUpointer_attribute attribute, CUdeviceptr address) {
  REMORA_REQUIRE(data != nullptr);
  REMORA_USE_CONTEXT(context);
  return pointer_attribute(*context, data, attribute, address);
}

/// An unknown pointer is no error here: its attributes are zeros.
REMORA_API(cuPointerGetAttributes)(unsigned int count, CUpointer_attribute* attributes, void** data,
                                   CUdeviceptr address) {
  REMORA_REQUIRE(count != 0 && attributes != nullptr && data != nullptr);
  REMORA_USE_CONTEXT(context);
  for (unsigned int i = 0; i < count; ++i) {
    REMORA_REQUIRE(data[i] != nullptr);
    if (pointer_attribute(*context, data[i], attributes[i], address) == CUDA_SUCCESS) continue;
    std::memset(data[i], 0, attribute_bytes(attributes[i]));
    // -2: no device.
    if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) *static_cast<int*>(data[i]) = -2;
  }
  return CUDA_SUCCESS;
}

// --- Virtual memory management -----------------------------------------------------------------

REMORA_API(cuMemGetAllocationGranularity)(std::size_t* granularity, const CUmemAllocationProp* properties,
                                          CUmemAllocationGranularity_flags) {
  REMORA_REQUIRE(granularity != nullptr && properties != nullptr);
  REMORA_USE_DEVICE(device, properties->location.id);
  *granularity = AddressSpace::kGranularity;
  return CUDA_SUCCESS;
}

REMORA_API(cuMemAddressReserve)(CUdeviceptr* address, std::size_t size, std::size_t alignment,
                                CUdeviceptr wanted, unsigned long long flags) {
  REMORA_REQUIRE(address != nullptr && flags == 0);
  REMORA_USE_DRIVER(driver);
  std::uint64_t begin = 0;
  if (const CUresult result = driver->memory->reserve(size, alignment, wanted, begin)) return result;
  *address = begin;
  return CUDA_SUCCESS;
}
REMORA_API(cuMemAddressFree)(CUdeviceptr address, std::size_t size) {
  REMORA_USE_DRIVER(driver);
  return driver->memory->unreserve(address, size);
}

REMORA_API(cuMemCreate)(CUmemGenericAllocationHandle* handle, std::size_t size,
                        const CUmemAllocationProp* properties, unsigned long long flags) {
  REMORA_REQUIRE(handle != nullptr && properties != nullptr && flags == 0);
  REMORA_REQUIRE(properties->type == CU_MEM_ALLOCATION_TYPE_PINNED &&
                 properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE);
  if (properties->requestedHandleTypes != 0) return CUDA_ERROR_NOT_SUPPORTED;
  REMORA_USE_DEVICE(device, properties->location.id);
  std::uint64_t made = 0;
  if (const CUresult result = address_space().create(device->ordinal, size, made)) return result;
  *handle = made;
  return CUDA_SUCCESS;
}
REMORA_API(cuMemRelease)(CUmemGenericAllocationHandle handle) {
  REMORA_USE_DRIVER(driver);
  return driver->memory->release_handle(handle);
}
REMORA_API(cuMemMap)(CUdeviceptr address, std::size_t size, std::size_t offset,
                     CUmemGenericAllocationHandle handle, unsigned long long flags) {
  REMORA_REQUIRE(flags == 0 && offset == 0);  // CUDA: both must be 0
  REMORA_USE_DRIVER(driver);
  return driver->memory->map(address, size, handle);
}
REMORA_API(cuMemUnmap)(CUdeviceptr address, std::size_t size) {
  REMORA_USE_DRIVER(driver);
  quiesce();
  return driver->memory->unmap(address, size);
}
REMORA_API(cuMemSetAccess)(CUdeviceptr address, std::size_t size, const CUmemAccessDesc* access,
                           std::size_t count) {
  REMORA_REQUIRE(access != nullptr && count != 0);
  REMORA_USE_DRIVER(driver);
  for (std::size_t i = 0; i < count; ++i) {
    REMORA_REQUIRE(access[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE);
    const Device* device = device_at(access[i].location.id);
    if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    const bool writable = access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    const bool readable = writable || access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READ;
    if (const CUresult result =
            driver->memory->set_access(address, size, device->ordinal, readable, writable)) {
      return result;
    }
  }
  return CUDA_SUCCESS;
}
REMORA_API(cuMemGetAccess)(unsigned long long* flags, const CUmemLocation* location,
                           CUdeviceptr address) {
  REMORA_REQUIRE(flags != nullptr && location != nullptr &&
                 location->type == CU_MEM_LOCATION_TYPE_DEVICE);
  REMORA_USE_DEVICE(device, location->id);
  bool readable = false;
  bool writable = false;
  if (const CUresult result =
          address_space().get_access(address, device->ordinal, readable, writable)) {
    return result;
  }
  *flags = writable   ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
           : readable ? CU_MEM_ACCESS_FLAGS_PROT_READ
                      : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  return CUDA_SUCCESS;
}
