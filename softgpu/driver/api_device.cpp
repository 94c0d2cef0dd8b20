// SPDX-License-Identifier: Apache-2.0
// Start-up, devices and error texts.
#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "softgpu/driver/entry.h"

using namespace remora::softgpu;

REMORA_API(cuInit)(unsigned int flags) {
  REMORA_REQUIRE(flags == 0);
  return Driver::initialize();
}

REMORA_API(cuDriverGetVersion)(int* version) {
  REMORA_REQUIRE(version != nullptr);
  *version = Driver::kVersion;
  return CUDA_SUCCESS;
}

REMORA_API(cuDeviceGet)(CUdevice* device, int ordinal) {
  REMORA_REQUIRE(device != nullptr);
  REMORA_USE_DEVICE(found, ordinal);
  *device = found->ordinal;
  return CUDA_SUCCESS;
}

REMORA_API(cuDeviceGetCount)(int* count) {
  REMORA_REQUIRE(count != nullptr);
  REMORA_USE_DRIVER(driver);
  *count = static_cast<int>(driver->devices.size());
  return CUDA_SUCCESS;
}

REMORA_API(cuDeviceGetName)(char* name, int length, CUdevice ordinal) {
  REMORA_REQUIRE(name != nullptr && length > 0);
  REMORA_USE_DEVICE(device, ordinal);
  const std::size_t copied =
      std::min(device->name.size(), static_cast<std::size_t>(length) - 1);
  std::memcpy(name, device->name.data(), copied);
  name[copied] = 0;
  return CUDA_SUCCESS;
}

REMORA_API(cuDeviceTotalMem_v2)(std::size_t* bytes, CUdevice ordinal) {
  REMORA_REQUIRE(bytes != nullptr);
  REMORA_USE_DEVICE(device, ordinal);
  *bytes = address_space().capacity();
  return CUDA_SUCCESS;
}

REMORA_API(cuDeviceGetAttribute)(int* value, CUdevice_attribute attribute, CUdevice ordinal) {
  REMORA_REQUIRE(value != nullptr && attribute > 0 && attribute < CU_DEVICE_ATTRIBUTE_MAX);
  REMORA_USE_DEVICE(device, ordinal);
  const auto at = device->attributes.find(attribute);
  *value = at == device->attributes.end() ? 0 : at->second;
  return CUDA_SUCCESS;
}

REMORA_API(cuDeviceGetUuid)(CUuuid* uuid, CUdevice ordinal) {
  REMORA_REQUIRE(uuid != nullptr);
  REMORA_USE_DEVICE(device, ordinal);
  *uuid = device->uuid;
  return CUDA_SUCCESS;
}
REMORA_API(cuDeviceGetUuid_v2)(CUuuid* uuid, CUdevice ordinal) {
  return cuDeviceGetUuid(uuid, ordinal);
}

REMORA_API(cuDeviceGetPCIBusId)(char* text, int length, CUdevice ordinal) {
  REMORA_REQUIRE(text != nullptr && length > 0);
  REMORA_USE_DEVICE(device, ordinal);
  const std::string name = fmt::format("0000:{:02X}:00.0", device->ordinal + 1);
  REMORA_REQUIRE(static_cast<std::size_t>(length) > name.size());
  std::memcpy(text, name.c_str(), name.size() + 1);
  return CUDA_SUCCESS;
}

REMORA_API(cuDeviceGetByPCIBusId)(CUdevice* device, const char* text) {
  REMORA_REQUIRE(device != nullptr && text != nullptr);
  REMORA_USE_DRIVER(driver);
  for (const auto& candidate : driver->devices) {
    char name[16];
    cuDeviceGetPCIBusId(name, sizeof name, candidate->ordinal);
    if (strcasecmp(name, text) != 0 && strcasecmp(name + 5, text) != 0) continue;
    *device = candidate->ordinal;
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_DEVICE;
}

REMORA_API(cuDeviceCanAccessPeer)(int* can, CUdevice ordinal, CUdevice peer) {
  REMORA_REQUIRE(can != nullptr);
  REMORA_USE_DEVICE(device, ordinal);
  REMORA_USE_DEVICE(other, peer);
  *can = 0;
  return CUDA_SUCCESS;
}

REMORA_API(cuDeviceGetP2PAttribute)(int* value, CUdevice_P2PAttribute attribute, CUdevice source,
                                    CUdevice destination) {
  REMORA_REQUIRE(value != nullptr && attribute > 0 && attribute <= 5 && source != destination);
  REMORA_USE_DEVICE(device, source);
  REMORA_USE_DEVICE(other, destination);
  *value = 0;
  return CUDA_SUCCESS;
}

namespace {

struct ErrorText {
  CUresult result;
  const char* name;
  const char* text;
};
#define REMORA_ERROR(name, text) {name, #name, text}
constexpr ErrorText kErrors[] = {
    REMORA_ERROR(CUDA_SUCCESS, "no error"),
    REMORA_ERROR(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
    REMORA_ERROR(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
    REMORA_ERROR(CUDA_ERROR_NOT_INITIALIZED, "initialization error"),
    REMORA_ERROR(CUDA_ERROR_DEINITIALIZED, "driver shutting down"),
    REMORA_ERROR(CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
    REMORA_ERROR(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
    REMORA_ERROR(CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid"),
    REMORA_ERROR(CUDA_ERROR_INVALID_CONTEXT, "invalid device context"),
    REMORA_ERROR(CUDA_ERROR_NO_BINARY_FOR_GPU, "no kernel image is available for execution on the device"),
    REMORA_ERROR(CUDA_ERROR_INVALID_PTX, "a PTX JIT compilation failed"),
    REMORA_ERROR(CUDA_ERROR_INVALID_SOURCE, "device kernel image is invalid"),
    REMORA_ERROR(CUDA_ERROR_FILE_NOT_FOUND, "file not found"),
    REMORA_ERROR(CUDA_ERROR_OPERATING_SYSTEM, "OS call failed or operation not supported on this OS"),
    REMORA_ERROR(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"),
    REMORA_ERROR(CUDA_ERROR_NOT_FOUND, "named symbol not found"),
    REMORA_ERROR(CUDA_ERROR_NOT_READY, "device not ready"),
    REMORA_ERROR(CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"),
    REMORA_ERROR(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "too many resources requested for launch"),
    REMORA_ERROR(CUDA_ERROR_LAUNCH_TIMEOUT, "the launch timed out and was terminated"),
    REMORA_ERROR(CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE, "cannot set while device is active in this process"),
    REMORA_ERROR(CUDA_ERROR_CONTEXT_IS_DESTROYED, "context is destroyed"),
    REMORA_ERROR(CUDA_ERROR_ASSERT, "device-side assert triggered"),
    REMORA_ERROR(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "part or all of the requested memory range is already mapped"),
    REMORA_ERROR(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "pointer does not correspond to a registered memory region"),
    REMORA_ERROR(CUDA_ERROR_HARDWARE_STACK_ERROR, "hardware stack error"),
    REMORA_ERROR(CUDA_ERROR_ILLEGAL_INSTRUCTION, "an illegal instruction was encountered"),
    REMORA_ERROR(CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned address"),
    REMORA_ERROR(CUDA_ERROR_INVALID_ADDRESS_SPACE, "operation not supported on global/shared address space"),
    REMORA_ERROR(CUDA_ERROR_INVALID_PC, "invalid program counter"),
    REMORA_ERROR(CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure"),
    REMORA_ERROR(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, "too many blocks in cooperative launch"),
    REMORA_ERROR(CUDA_ERROR_NOT_PERMITTED, "operation not permitted"),
    REMORA_ERROR(CUDA_ERROR_NOT_SUPPORTED, "operation not supported"),
    REMORA_ERROR(CUDA_ERROR_SYSTEM_NOT_READY, "system not yet initialized"),
    REMORA_ERROR(CUDA_ERROR_UNKNOWN, "unknown error"),
};
#undef REMORA_ERROR

const ErrorText* find_error(CUresult result) {
  const auto* at = std::find_if(std::begin(kErrors), std::end(kErrors),
                                [&](const ErrorText& known) { return known.result == result; });
  return at == std::end(kErrors) ? nullptr : at;
}

}  // namespace

REMORA_API(cuGetErrorName)(CUresult error, const char** name) {
  REMORA_REQUIRE(name != nullptr);
  const ErrorText* found = find_error(error);
  *name = found != nullptr ? found->name : nullptr;
  return found != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

REMORA_API(cuGetErrorString)(CUresult error, const char** text) {
  REMORA_REQUIRE(text != nullptr);
  const ErrorText* found = find_error(error);
  *text = found != nullptr ? found->text : nullptr;
  return found != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
