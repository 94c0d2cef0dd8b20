// SPDX-License-Identifier: Apache-2.0
// What the files of entry points share.
#pragma once

#include "softgpu/driver/core.h"

/// Declares `context`, the calling thread's usable one, or returns why there is none.
#define REMORA_USE_CONTEXT(context)                                       \
  CUresult remora_context_result = CUDA_SUCCESS;                          \
  ::remora::softgpu::Context* const context =                             \
      ::remora::softgpu::usable_context(remora_context_result);           \
  if (context == nullptr) return remora_context_result

#define REMORA_USE_DRIVER(driver)                                         \
  ::remora::softgpu::Driver* const driver = ::remora::softgpu::Driver::get(); \
  if (driver == nullptr) return CUDA_ERROR_NOT_INITIALIZED

#define REMORA_USE_DEVICE(device, ordinal)                                \
  if (::remora::softgpu::Driver::get() == nullptr) return CUDA_ERROR_NOT_INITIALIZED; \
  ::remora::softgpu::Device* const device = ::remora::softgpu::device_at(ordinal); \
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE

/// Returns unless the condition holds.
#define REMORA_REQUIRE(condition) \
  if (!(condition)) return CUDA_ERROR_INVALID_VALUE

/// Declares `context`, the calling thread's, and `stream`, with the context that it belongs to.
#define REMORA_USE_STREAM(stream, handle, per_thread)                     \
  REMORA_USE_CONTEXT(context);                                            \
  const ::remora::softgpu::StreamRef stream =                             \
      ::remora::softgpu::find_stream(*context, handle, per_thread);       \
  if (!stream) return CUDA_ERROR_INVALID_HANDLE

/// The memory of all devices; the driver is initialised.
inline remora::softgpu::AddressSpace& address_space() {
  return *remora::softgpu::Driver::get()->memory;
}
