// SPDX-License-Identifier: Apache-2.0
// Contexts and the calling thread's stack of them.
#include "softgpu/driver/context_end.h"
#include "softgpu/driver/entry.h"

using namespace remora::softgpu;

namespace {

bool is_context(CUcontext handle) {
  Driver* driver = Driver::get();
  return driver != nullptr && driver->handles.is(handle, Handles::Kind::context);
}
Context* as_context(CUcontext handle) { return reinterpret_cast<Context*>(handle); }
CUcontext as_handle(Context* context) { return reinterpret_cast<CUcontext>(context); }

/// The given context, or the current one for null.
CUresult given_or_current(CUcontext handle, Context*& context) {
  REMORA_USE_DRIVER(driver);
  if (handle == nullptr) {
    context = current_context();
    return context != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
  }
  if (!is_context(handle)) return CUDA_ERROR_INVALID_CONTEXT;
  context = as_context(handle);
  return CUDA_SUCCESS;
}

void end_and_tell(Context& context) {
  tell_context_ends(as_handle(&context));
  end_context(context);
}

}  // namespace

REMORA_API(cuDevicePrimaryCtxRetain)(CUcontext* handle, CUdevice ordinal) {
  REMORA_REQUIRE(handle != nullptr);
  REMORA_USE_DEVICE(device, ordinal);
  Context& context = primary_context(*device);
  const std::lock_guard hold(device->mutex);
  ++device->primary_retains;
  context.active = true;
  context.flags = device->primary_flags;
  *handle = as_handle(&context);
  return CUDA_SUCCESS;
}

REMORA_API(cuDevicePrimaryCtxRelease_v2)(CUdevice ordinal) {
  REMORA_USE_DEVICE(device, ordinal);
  {
    const std::lock_guard hold(device->mutex);
    if (device->primary_retains == 0) return CUDA_ERROR_INVALID_CONTEXT;
    if (--device->primary_retains != 0) return CUDA_SUCCESS;
  }
  end_and_tell(primary_context(*device));
  return CUDA_SUCCESS;
}
REMORA_API(cuDevicePrimaryCtxRelease)(CUdevice ordinal) {
  return cuDevicePrimaryCtxRelease_v2(ordinal);
}

REMORA_API(cuDevicePrimaryCtxReset_v2)(CUdevice ordinal) {
  REMORA_USE_DEVICE(device, ordinal);
  Context& context = primary_context(*device);
  bool retained;
  {
    const std::lock_guard hold(device->mutex);
    retained = device->primary_retains != 0;
  }
  if (retained || context.active) end_and_tell(context);
  // Whoever retained it may go on: it starts afresh at the next use.
  context.active = retained;
  return CUDA_SUCCESS;
}
REMORA_API(cuDevicePrimaryCtxReset)(CUdevice ordinal) { return cuDevicePrimaryCtxReset_v2(ordinal); }

REMORA_API(cuDevicePrimaryCtxSetFlags_v2)(CUdevice ordinal, unsigned int flags) {
  REMORA_REQUIRE((flags & ~CU_CTX_FLAGS_MASK) == 0);
  REMORA_USE_DEVICE(device, ordinal);
  const std::lock_guard hold(device->mutex);
  device->primary_flags = flags;
  if (device->primary) device->primary->flags = flags;
  return CUDA_SUCCESS;
}
REMORA_API(cuDevicePrimaryCtxSetFlags)(CUdevice ordinal, unsigned int flags) {
  return cuDevicePrimaryCtxSetFlags_v2(ordinal, flags);
}

REMORA_API(cuDevicePrimaryCtxGetState)(CUdevice ordinal, unsigned int* flags, int* active) {
  REMORA_REQUIRE(flags != nullptr && active != nullptr);
  REMORA_USE_DEVICE(device, ordinal);
  const std::lock_guard hold(device->mutex);
  *flags = device->primary_flags;
  *active = device->primary && device->primary->active ? 1 : 0;
  return CUDA_SUCCESS;
}

REMORA_API(cuCtxCreate_v2)(CUcontext* handle, unsigned int flags, CUdevice ordinal) {
  REMORA_REQUIRE(handle != nullptr && (flags & ~CU_CTX_FLAGS_MASK) == 0);
  REMORA_USE_DEVICE(device, ordinal);
  const auto context = make_context(*device, flags, false);
  context_stack().push_back(context.get());
  *handle = as_handle(context.get());
  return CUDA_SUCCESS;
}
REMORA_API(cuCtxCreate_v4)(CUcontext* handle, CUctxCreateParams* parameters, unsigned int flags,
                           CUdevice ordinal) {
  if (parameters != nullptr &&
      (parameters->numExecAffinityParams != 0 || parameters->cigParams != nullptr)) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  return cuCtxCreate_v2(handle, flags, ordinal);
}

REMORA_API(cuCtxDestroy_v2)(CUcontext handle) {
  REMORA_USE_DRIVER(driver);
  if (!is_context(handle)) return CUDA_ERROR_INVALID_CONTEXT;
  Context& context = *as_context(handle);
  if (context.primary) return CUDA_ERROR_INVALID_CONTEXT;
  if (current_context() == &context) context_stack().pop_back();
  end_and_tell(context);
  return CUDA_SUCCESS;
}

REMORA_API(cuCtxSynchronize)() {
  REMORA_USE_CONTEXT(context);
  return context->synchronize();
}
REMORA_API(cuCtxSynchronize_v2)(CUcontext handle) {
  Context* context = nullptr;
  if (const CUresult result = given_or_current(handle, context)) return result;
  return context->synchronize();
}

REMORA_API(cuCtxGetLimit)(std::size_t* value, CUlimit limit) {
  REMORA_REQUIRE(value != nullptr);
  REMORA_USE_CONTEXT(context);
  if (limit < 0 || limit >= CU_LIMIT_MAX) return CUDA_ERROR_UNSUPPORTED_LIMIT;
  *value = context->limits[limit];
  return CUDA_SUCCESS;
}
REMORA_API(cuCtxSetLimit)(CUlimit limit, std::size_t value) {
  REMORA_USE_CONTEXT(context);
  if (limit < 0 || limit >= CU_LIMIT_MAX) return CUDA_ERROR_UNSUPPORTED_LIMIT;
  context->limits[limit] = value;
  return CUDA_SUCCESS;
}

REMORA_API(cuCtxGetCurrent)(CUcontext* handle) {
  REMORA_REQUIRE(handle != nullptr);
  REMORA_USE_DRIVER(driver);
  *handle = as_handle(current_context());
  return CUDA_SUCCESS;
}

REMORA_API(cuCtxSetCurrent)(CUcontext handle) {
  REMORA_USE_DRIVER(driver);
  auto& stack = context_stack();
  if (handle == nullptr) {
    if (!stack.empty()) stack.pop_back();
    return CUDA_SUCCESS;
  }
  if (!is_context(handle)) return CUDA_ERROR_INVALID_CONTEXT;
  if (stack.empty()) {
    stack.push_back(as_context(handle));
  } else {
    stack.back() = as_context(handle);
  }
  return CUDA_SUCCESS;
}

REMORA_API(cuCtxPushCurrent_v2)(CUcontext handle) {
  REMORA_USE_DRIVER(driver);
  if (!is_context(handle)) return CUDA_ERROR_INVALID_CONTEXT;
  context_stack().push_back(as_context(handle));
  return CUDA_SUCCESS;
}

REMORA_API(cuCtxPopCurrent_v2)(CUcontext* handle) {
  REMORA_USE_DRIVER(driver);
  auto& stack = context_stack();
  if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  if (handle != nullptr) *handle = as_handle(stack.back());
  stack.pop_back();
  return CUDA_SUCCESS;
}

REMORA_API(cuCtxGetDevice)(CUdevice* device) {
  REMORA_REQUIRE(device != nullptr);
  REMORA_USE_DRIVER(driver);
  const Context* context = current_context();
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *device = context->device->ordinal;
  return CUDA_SUCCESS;
}
REMORA_API(cuCtxGetDevice_v2)(CUdevice* device, CUcontext handle) {
  REMORA_REQUIRE(device != nullptr);
  Context* context = nullptr;
  if (const CUresult result = given_or_current(handle, context)) return result;
  *device = context->device->ordinal;
  return CUDA_SUCCESS;
}

REMORA_API(cuCtxGetFlags)(unsigned int* flags) {
  REMORA_REQUIRE(flags != nullptr);
  REMORA_USE_CONTEXT(context);
  *flags = context->flags;
  return CUDA_SUCCESS;
}

REMORA_API(cuCtxGetId)(CUcontext handle, unsigned long long* id) {
  REMORA_REQUIRE(id != nullptr);
  Context* context = nullptr;
  if (const CUresult result = given_or_current(handle, context)) return result;
  *id = context->id;
  return CUDA_SUCCESS;
}

REMORA_API(cuCtxGetApiVersion)(CUcontext handle, unsigned int* version) {
  REMORA_REQUIRE(version != nullptr);
  Context* context = nullptr;
  if (const CUresult result = given_or_current(handle, context)) return result;
  *version = context->api_version;
  return CUDA_SUCCESS;
}

REMORA_API(cuCtxGetStreamPriorityRange)(int* least, int* greatest) {
  REMORA_USE_CONTEXT(context);
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = -5;
  return CUDA_SUCCESS;
}

REMORA_API(cuCtxGetCacheConfig)(CUfunc_cache* config) {
  REMORA_REQUIRE(config != nullptr);
  REMORA_USE_CONTEXT(context);
  *config = context->cache_config;
  return CUDA_SUCCESS;
}
REMORA_API(cuCtxSetCacheConfig)(CUfunc_cache config) {
  REMORA_USE_CONTEXT(context);
  context->cache_config = config;
  return CUDA_SUCCESS;
}
REMORA_API(cuCtxGetSharedMemConfig)(CUsharedconfig* config) {
  REMORA_REQUIRE(config != nullptr);
  REMORA_USE_CONTEXT(context);
  *config = context->shared_config;
  return CUDA_SUCCESS;
}
REMORA_API(cuCtxSetSharedMemConfig)(CUsharedconfig config) {
  REMORA_USE_CONTEXT(context);
  context->shared_config = config;
  return CUDA_SUCCESS;
}
