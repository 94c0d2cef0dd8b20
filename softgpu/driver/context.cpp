// SPDX-License-Identifier: Apache-2.0
// Contexts: the calling thread's stack of them, their life, and the order of work among the streams
// of one.
#include <algorithm>

#include "softgpu/driver/core.h"

namespace remora::softgpu {

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
  std::vector<std::unique_ptr<LoadedModule>> modules;  // ended with no lock held
  {
    const std::lock_guard hold(driver.mutex);
    for (auto& [pointer, library] : driver.libraries) {
      const std::lock_guard hold_library(library->mutex);
      const auto at = library->modules.find(&context);
      if (at == library->modules.end()) continue;
      modules.push_back(std::move(at->second));
      library->modules.erase(at);
    }
  }
  const std::lock_guard hold(context.ordering);
  for (auto& [handle, stream] : context.streams) driver.handles.remove(handle);
  for (auto& [handle, event] : context.events) driver.handles.remove(handle);
  for (auto& [handle, module] : context.modules) {
    driver.handles.remove(handle);
    modules.push_back(std::move(module));
  }
  context.streams.clear();
  context.retired.clear();
  context.events.clear();
  context.modules.clear();
  modules.clear();
  context.heap.clear(*driver.memory);
  context.failed = CUDA_SUCCESS;
  if (context.primary) {
    context.active = false;
    context.legacy = std::make_shared<Stream>(0, 0, driver.next_id++);
    return;
  }
  driver.handles.remove(&context);
  const std::lock_guard hold_driver(driver.mutex);
  const auto at = driver.contexts.find(&context);
  if (at == driver.contexts.end()) return;
  driver.ended.push_back(std::move(at->second));
  driver.contexts.erase(at);
}

// --- Order among streams -----------------------------------------------------------------------

Mark Context::submit(const std::shared_ptr<Stream>& stream, std::function<void()> work,
                     std::vector<Mark> after) {
  return submit_always(
      stream,
      [this, work = std::move(work)] {
        if (failed.load() == CUDA_SUCCESS) work();
      },
      std::move(after));
}

Mark Context::submit_always(const std::shared_ptr<Stream>& stream, std::function<void()> work,
                            std::vector<Mark> after) {
  const std::lock_guard hold(ordering);
  if (stream == legacy) {
    for (auto& [handle, other] : streams) {
      if (other->blocking() && !other->idle()) after.push_back(other->last());
    }
    std::erase_if(retired, [](const auto& other) { return other->idle(); });
    for (auto& other : retired) {
      if (other->blocking()) after.push_back(other->last());
    }
  } else if (stream->blocking() && !legacy->idle()) {
    after.push_back(legacy->last());
  }
  return stream->submit(std::move(work), std::move(after));
}

std::vector<Mark> Context::marks_of(const std::shared_ptr<Stream>& stream) {
  const std::lock_guard hold(ordering);
  std::vector<Mark> marks{stream->last()};
  if (stream != legacy) return marks;
  for (auto& [handle, other] : streams) {
    if (other->blocking()) marks.push_back(other->last());
  }
  for (auto& other : retired) {
    if (other->blocking()) marks.push_back(other->last());
  }
  return marks;
}

std::vector<Mark> Context::marks_of_all() {
  const std::lock_guard hold(ordering);
  std::vector<Mark> marks{legacy->last()};
  for (auto& [handle, stream] : streams) marks.push_back(stream->last());
  for (auto& stream : retired) marks.push_back(stream->last());
  return marks;
}

CUresult Context::synchronize() {
  for (const Mark& mark : marks_of_all()) mark.wait();
  return failed.load();
}

void Context::retire(Stream* stream) {
  const std::lock_guard hold(ordering);
  const auto at = streams.find(stream);
  if (at == streams.end()) return;
  std::erase_if(retired, [](const auto& other) { return other->idle(); });
  if (!at->second->idle()) retired.push_back(at->second);
  streams.erase(at);
}

void quiesce() {
  Driver& driver = *Driver::get();
  std::vector<std::shared_ptr<Context>> contexts;
  {
    const std::lock_guard hold(driver.mutex);
    for (auto& [handle, context] : driver.contexts) contexts.push_back(context);
  }
  for (auto& context : contexts) context->synchronize();
}

namespace {

/// A blocking stream of the calling thread's own, one for each context.
std::shared_ptr<Stream> per_thread_stream(Context& context) {
  thread_local std::map<std::uint64_t, std::shared_ptr<Stream>> own;
  std::shared_ptr<Stream>& stream = own[context.id];
  const std::lock_guard hold(context.ordering);
  if (!stream || !context.streams.contains(stream.get())) {
    stream = std::make_shared<Stream>(0, 0, Driver::get()->next_id++);
    context.streams[stream.get()] = stream;
  }
  return stream;
}

}  // namespace

StreamRef find_stream(Context& current, CUstream handle, bool per_thread) {
  if (handle == CU_STREAM_LEGACY || (handle == nullptr && !per_thread)) {
    return {&current, current.legacy};
  }
  if (handle == CU_STREAM_PER_THREAD || handle == nullptr) {
    return {&current, per_thread_stream(current)};
  }
  auto* const stream = reinterpret_cast<Stream*>(handle);
  {
    const std::lock_guard hold(current.ordering);
    const auto at = current.streams.find(stream);
    if (at != current.streams.end()) return {&current, at->second};
  }
  Driver& driver = *Driver::get();
  if (!driver.handles.is(handle, Handles::Kind::stream)) return {};
  const std::lock_guard hold(driver.mutex);
  for (auto& [pointer, context] : driver.contexts) {
    const std::lock_guard hold_context(context->ordering);
    const auto at = context->streams.find(stream);
    if (at != context->streams.end()) return {context.get(), at->second};
  }
  return {};
}

}  // namespace remora::softgpu
