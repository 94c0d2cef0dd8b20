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
  if (const CUresult result = context->device->memory->allocate(size, begin)) return result;
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
  // Work that is under way may use it.
  if (const CUresult result = context->synchronize()) return result;
  for (const auto& device : Driver::get()->devices) {
    if (device->memory->release(address) == CUDA_SUCCESS) return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

REMORA_API(cuMemGetInfo_v2)(std::size_t* free, std::size_t* total) {
  REMORA_REQUIRE(free != nullptr && total != nullptr);
  REMORA_USE_CONTEXT(context);
  *free = context->device->memory->free_bytes();
  *total = context->device->memory->capacity();
  return CUDA_SUCCESS;
}

REMORA_API(cuMemGetAddressRange_v2)(CUdeviceptr* base, std::size_t* size, CUdeviceptr address) {
  REMORA_USE_CONTEXT(context);
  const auto range = context->device->memory->range_of(address);
  if (!range) return CUDA_ERROR_NOT_FOUND;
  if (base != nullptr) *base = range->begin;
  if (size != nullptr) *size = range->size;
  return CUDA_SUCCESS;
}

// --- Host memory -------------------------------------------------------------------------------

REMORA_API(cuMemHostAlloc)(void** address, std::size_t size, unsigned int flags) {
  REMORA_REQUIRE(address != nullptr && (flags & ~7u) == 0);
  REMORA_USE_CONTEXT(context);
  return context->device->memory->allocate_host(size, flags, *address);
}
REMORA_API(cuMemAllocHost_v2)(void** address, std::size_t size) {
  return cuMemHostAlloc(address, size, 0);
}
REMORA_API(cuMemFreeHost)(void* address) {
  REMORA_USE_CONTEXT(context);
  if (address == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = context->synchronize()) return result;
  return context->device->memory->release_host(address);
}
REMORA_API(cuMemHostGetFlags)(unsigned int* flags, void* address) {
  REMORA_REQUIRE(flags != nullptr);
  REMORA_USE_CONTEXT(context);
  const auto range = context->device->memory->range_of(reinterpret_cast<std::uint64_t>(address));
  REMORA_REQUIRE(range && range->kind == DeviceMemory::Kind::host_allocated);
  *flags = range->flags | CU_MEMHOSTALLOC_DEVICEMAP;
  return CUDA_SUCCESS;
}
REMORA_API(cuMemHostGetDevicePointer_v2)(CUdeviceptr* device_address, void* address,
                                         unsigned int flags) {
  REMORA_REQUIRE(device_address != nullptr && flags == 0);
  REMORA_USE_CONTEXT(context);
  const auto range = context->device->memory->range_of(reinterpret_cast<std::uint64_t>(address));
  REMORA_REQUIRE(range && (range->kind == DeviceMemory::Kind::host_allocated ||
                           range->kind == DeviceMemory::Kind::host_registered));
  *device_address = reinterpret_cast<CUdeviceptr>(address);
  return CUDA_SUCCESS;
}
REMORA_API(cuMemHostRegister_v2)(void* address, std::size_t size, unsigned int flags) {
  REMORA_USE_CONTEXT(context);
  return context->device->memory->register_host(address, size, flags);
}
REMORA_API(cuMemHostUnregister)(void* address) {
  REMORA_USE_CONTEXT(context);
  if (const CUresult result = context->synchronize()) return result;
  return context->device->memory->unregister_host(address);
}

// --- What a pointer is -------------------------------------------------------------------------

namespace {

using Kind = DeviceMemory::Kind;

CUresult pointer_attribute(Context& context, void* data, CUpointer_attribute attribute,
                           CUdeviceptr address) {
  const auto range = context.device->memory->range_of(address);
  if (!range) return CUDA_ERROR_INVALID_VALUE;
  const bool host = range->kind == Kind::host_allocated || range->kind == Kind::host_registered;
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
  *granularity = DeviceMemory::kGranularity;
  return CUDA_SUCCESS;
}

REMORA_API(cuMemAddressReserve)(CUdeviceptr* address, std::size_t size, std::size_t alignment,
                                CUdeviceptr wanted, unsigned long long flags) {
  REMORA_REQUIRE(address != nullptr && flags == 0);
  REMORA_USE_DRIVER(driver);
  std::uint64_t begin = 0;
  // A reservation belongs to the process; the first device keeps it.
  if (const CUresult result = driver->devices[0]->memory->reserve(size, alignment, wanted, begin)) {
    return result;
  }
  *address = begin;
  return CUDA_SUCCESS;
}
REMORA_API(cuMemAddressFree)(CUdeviceptr address, std::size_t size) {
  REMORA_USE_DRIVER(driver);
  return driver->devices[0]->memory->unreserve(address, size);
}

namespace {

// A handle is the device's own with the device in its upper half.
std::uint64_t make_handle(int ordinal, std::uint64_t inner) {
  return (static_cast<std::uint64_t>(ordinal) + 1) << 48 | inner;
}
Device* handle_device(CUmemGenericAllocationHandle handle) {
  return device_at(static_cast<int>(handle >> 48) - 1);
}
std::uint64_t handle_inner(CUmemGenericAllocationHandle handle) { return handle & ((1ull << 48) - 1); }

}  // namespace

REMORA_API(cuMemCreate)(CUmemGenericAllocationHandle* handle, std::size_t size,
                        const CUmemAllocationProp* properties, unsigned long long flags) {
  REMORA_REQUIRE(handle != nullptr && properties != nullptr && flags == 0);
  REMORA_REQUIRE(properties->type == CU_MEM_ALLOCATION_TYPE_PINNED &&
                 properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE);
  if (properties->requestedHandleTypes != 0) return CUDA_ERROR_NOT_SUPPORTED;
  REMORA_USE_DEVICE(device, properties->location.id);
  std::uint64_t inner = 0;
  if (const CUresult result = device->memory->create(size, inner)) return result;
  *handle = make_handle(device->ordinal, inner);
  return CUDA_SUCCESS;
}
REMORA_API(cuMemRelease)(CUmemGenericAllocationHandle handle) {
  REMORA_USE_DRIVER(driver);
  Device* device = handle_device(handle);
  REMORA_REQUIRE(device != nullptr);
  return device->memory->release_handle(handle_inner(handle));
}
REMORA_API(cuMemMap)(CUdeviceptr address, std::size_t size, std::size_t offset,
                     CUmemGenericAllocationHandle handle, unsigned long long flags) {
  REMORA_REQUIRE(flags == 0);
  REMORA_USE_DRIVER(driver);
  Device* device = handle_device(handle);
  REMORA_REQUIRE(device != nullptr);
  return device->memory->map(address, size, offset, handle_inner(handle));
}
REMORA_API(cuMemUnmap)(CUdeviceptr address, std::size_t size) {
  REMORA_USE_DRIVER(driver);
  for (const auto& device : driver->devices) {
    if (device->memory->unmap(address, size) == CUDA_SUCCESS) return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}
REMORA_API(cuMemSetAccess)(CUdeviceptr address, std::size_t size, const CUmemAccessDesc* access,
                           std::size_t count) {
  REMORA_REQUIRE(access != nullptr && count != 0);
  REMORA_USE_DRIVER(driver);
  for (std::size_t i = 0; i < count; ++i) {
    REMORA_REQUIRE(access[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE);
    Device* device = device_at(access[i].location.id);
    if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    const bool writable = access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    const bool readable = writable || access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READ;
    if (const CUresult result = device->memory->set_access(address, size, readable, writable)) {
      return result;
    }
  }
  return CUDA_SUCCESS;
}
