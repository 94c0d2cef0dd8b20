// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/core.h"

#include <sys/sysinfo.h>

#include <algorithm>

#include "base/bytes.h"
#include "base/environment.h"
#include "base/log.h"
#include "softgpu/driver/device_attributes.h"

namespace remora::softgpu {
namespace {

std::atomic<Driver*> the_driver{nullptr};
std::mutex initializing;

/// Half of the host's memory, as far as nothing else is asked for.
std::uint64_t default_memory() {
  struct sysinfo info {};
  if (sysinfo(&info) != 0) return 4ull << 30;
  return align_down(std::uint64_t{info.totalram} * info.mem_unit / 2, 1 << 20);
}

CUuuid uuid_of(int ordinal) {
  // "Remora software" and the ordinal: the same in every process, as programs expect of a GPU.
  CUuuid uuid{};
  const char* text = "remora-softgpu-";
  std::copy_n(text, 15, uuid.bytes);
  uuid.bytes[15] = static_cast<char>(ordinal);
  return uuid;
}

}  // namespace

Driver* Driver::get() { return the_driver.load(std::memory_order_acquire); }

CUresult Driver::initialize() {
  const std::lock_guard hold(initializing);
  if (get() != nullptr) return CUDA_SUCCESS;
  const auto memory = environment::size_bytes("REMORA_SOFTGPU_MEMORY", default_memory());
  const auto count = environment::number("REMORA_SOFTGPU_DEVICES", 1, 1, 16);
  const auto workers = environment::number("REMORA_SOFTGPU_WORKERS", 0, 0, 1024);
  const auto capability = capability_from_environment();
  for (const Error* error : {memory.ok() ? nullptr : &memory.error(),
                             count.ok() ? nullptr : &count.error(),
                             workers.ok() ? nullptr : &workers.error(),
                             capability.ok() ? nullptr : &capability.error()}) {
    if (error == nullptr) continue;
    log::error("software GPU: {}", error->text);
    return CUDA_ERROR_INVALID_VALUE;
  }
  auto* driver = new Driver({static_cast<unsigned>(*workers)});
  for (int i = 0; i < static_cast<int>(*count); ++i) {
    auto device = std::make_unique<Device>();
    device->ordinal = i;
    device->name = "Remora software GPU";
    device->uuid = uuid_of(i);
    device->capability = *capability;
    device->attributes = device_attributes(*capability, driver->engine.workers(), i);
    device->memory = std::make_unique<DeviceMemory>(*memory);
    driver->devices.push_back(std::move(device));
  }
  the_driver.store(driver, std::memory_order_release);
  return CUDA_SUCCESS;
}

// --- Handles -----------------------------------------------------------------------------------

void Handles::add(const void* handle, Kind kind) {
  const std::unique_lock hold(mutex_);
  kinds_[handle] = kind;
}
void Handles::remove(const void* handle) {
  const std::unique_lock hold(mutex_);
  kinds_.erase(handle);
}
bool Handles::is(const void* handle, Kind kind) const {
  const std::shared_lock hold(mutex_);
  const auto at = kinds_.find(handle);
  return at != kinds_.end() && at->second == kind;
}

// --- Contexts ----------------------------------------------------------------------------------

std::vector<Context*>& context_stack() {
  thread_local std::vector<Context*> stack;
  return stack;
}

Context* current_context() {
  const auto& stack = context_stack();
  return stack.empty() ? nullptr : stack.back();
}

Context* usable_context(CUresult& result) {
  Driver* driver = Driver::get();
  if (driver == nullptr) {
    result = CUDA_ERROR_NOT_INITIALIZED;
    return nullptr;
  }
  Context* context = current_context();
  if (context == nullptr) {
    result = CUDA_ERROR_INVALID_CONTEXT;
    return nullptr;
  }
  if (!driver->handles.is(context, Handles::Kind::context) ||
      (context->primary && !context->active.load())) {
    result = CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return nullptr;
  }
  result = context->failed.load();
  return result == CUDA_SUCCESS ? context : nullptr;
}

Device* device_at(CUdevice ordinal) {
  Driver* driver = Driver::get();
  if (driver == nullptr || ordinal < 0 ||
      static_cast<std::size_t>(ordinal) >= driver->devices.size()) {
    return nullptr;
  }
  return driver->devices[static_cast<std::size_t>(ordinal)].get();
}

std::shared_ptr<Context> make_context(Device& device, unsigned flags, bool primary) {
  Driver& driver = *Driver::get();
  auto context = std::make_shared<Context>();
  context->device = &device;
  context->flags = flags;
  context->primary = primary;
  context->active = !primary;
  context->id = driver.next_id++;
  context->legacy = std::make_shared<Stream>(0, 0, driver.next_id++);
  context->limits[CU_LIMIT_STACK_SIZE] = 1024;
  context->limits[CU_LIMIT_PRINTF_FIFO_SIZE] = 1 << 20;
  context->limits[CU_LIMIT_MALLOC_HEAP_SIZE] = 8 << 20;
  context->limits[CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2;
  context->limits[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048;
  context->limits[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64;
  const std::lock_guard hold(driver.mutex);
  driver.contexts[context.get()] = context;
  driver.handles.add(context.get(), Handles::Kind::context);
  return context;
}

Context& primary_context(Device& device) {
  const std::lock_guard hold(device.mutex);
  if (!device.primary) device.primary = make_context(device, device.primary_flags, true);
  return *device.primary;
}

/// Everything that belongs to the context goes; a primary one stays as an empty, inactive handle.
void end_context(Context& context) {
  Driver& driver = *Driver::get();
  context.synchronize();
  {
    const std::lock_guard hold(driver.mutex);
    for (auto& [pointer, library] : driver.libraries) {
      const std::lock_guard hold_library(library->mutex);
      library->modules.erase(&context);
    }
  }
  const std::lock_guard hold(context.ordering);
  for (auto& [handle, stream] : context.streams) driver.handles.remove(handle);
  for (auto& [handle, event] : context.events) driver.handles.remove(handle);
  for (auto& [handle, module] : context.modules) driver.handles.remove(handle);
  context.streams.clear();
  context.events.clear();
  context.modules.clear();
  context.failed = CUDA_SUCCESS;
  if (context.primary) {
    context.active = false;
    context.legacy = std::make_shared<Stream>(0, 0, driver.next_id++);
  } else {
    driver.handles.remove(&context);
    const std::lock_guard hold_driver(driver.mutex);
    driver.contexts.erase(&context);
  }
}

Mark Context::submit(const std::shared_ptr<Stream>& stream, std::function<void()> work,
                     std::vector<Mark> after) {
  const std::lock_guard hold(ordering);
  if (stream == legacy) {
    for (auto& [handle, other] : streams) {
      if (other->blocking() && !other->idle()) after.push_back(other->last());
    }
  } else if (stream->blocking() && !legacy->idle()) {
    after.push_back(legacy->last());
  }
  return stream->submit(std::move(work), std::move(after));
}

CUresult Context::synchronize() {
  std::vector<Mark> marks;
  {
    const std::lock_guard hold(ordering);
    marks.push_back(legacy->last());
    for (auto& [handle, stream] : streams) marks.push_back(stream->last());
  }
  for (const Mark& mark : marks) mark.wait();
  return failed.load();
}

std::shared_ptr<Stream> find_stream(Context& context, CUstream handle, bool per_thread) {
  if (handle == CU_STREAM_LEGACY || (handle == nullptr && !per_thread)) return context.legacy;
  if (handle == CU_STREAM_PER_THREAD || handle == nullptr) {
    // A blocking stream of the thread's own, one for each context.
    thread_local std::map<std::uint64_t, std::shared_ptr<Stream>> own;
    std::shared_ptr<Stream>& stream = own[context.id];
    const std::lock_guard hold(context.ordering);
    if (!stream || !context.streams.contains(stream.get())) {
      stream = std::make_shared<Stream>(0, 0, Driver::get()->next_id++);
      context.streams[stream.get()] = stream;
    }
    return stream;
  }
  const std::lock_guard hold(context.ordering);
  const auto at = context.streams.find(reinterpret_cast<Stream*>(handle));
  return at == context.streams.end() ? nullptr : at->second;
}

CUresult result_of(Fault::Kind kind) {
  switch (kind) {
    case Fault::Kind::none: return CUDA_SUCCESS;
    case Fault::Kind::illegal_address: return CUDA_ERROR_ILLEGAL_ADDRESS;
    case Fault::Kind::misaligned_address: return CUDA_ERROR_MISALIGNED_ADDRESS;
    case Fault::Kind::illegal_instruction: return CUDA_ERROR_ILLEGAL_INSTRUCTION;
    case Fault::Kind::assert_failed: return CUDA_ERROR_ASSERT;
    case Fault::Kind::invalid_ptx: return CUDA_ERROR_INVALID_PTX;
    case Fault::Kind::stack_overflow: return CUDA_ERROR_HARDWARE_STACK_ERROR;
    case Fault::Kind::trapped:
    case Fault::Kind::internal: return CUDA_ERROR_LAUNCH_FAILED;
  }
  return CUDA_ERROR_LAUNCH_FAILED;
}

}  // namespace remora::softgpu
