// SPDX-License-Identifier: Apache-2.0
// Streams, events and host functions.
#include <algorithm>

#include "base/clock.h"
#include "softgpu/driver/entry.h"

using namespace remora::softgpu;

namespace {

CUresult create_stream(CUstream* handle, unsigned flags, int priority) {
  REMORA_REQUIRE(handle != nullptr && (flags & ~CU_STREAM_NON_BLOCKING) == 0);
  REMORA_USE_CONTEXT(context);
  auto stream = std::make_shared<Stream>(flags, std::clamp(priority, -5, 0), Driver::get()->next_id++);
  *handle = reinterpret_cast<CUstream>(stream.get());
  Driver::get()->handles.add(stream.get(), Handles::Kind::stream);
  const std::lock_guard hold(context->ordering);
  context->streams[stream.get()] = std::move(stream);
  return CUDA_SUCCESS;
}

/// Events may be used from other contexts than their own.
Event* find_event(CUevent handle) {
  return Driver::get()->handles.is(handle, Handles::Kind::event) ? reinterpret_cast<Event*>(handle)
                                                                : nullptr;
}

CUresult record_event(CUevent handle, CUstream stream_handle, unsigned flags, bool per_thread) {
  REMORA_REQUIRE(flags == 0 || flags == CU_EVENT_RECORD_EXTERNAL);
  REMORA_USE_STREAM(stream, stream_handle, per_thread);
  Event* event = find_event(handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  auto time = std::make_shared<std::atomic<std::uint64_t>>(0);
  const Mark mark = stream.context->submit_always(
      stream.stream, [time] { time->store(remora::now_ns()); });
  const std::lock_guard hold(event->mutex);
  event->last = {mark, std::move(time)};
  return CUDA_SUCCESS;
}

CUresult wait_event(CUstream stream_handle, CUevent handle, unsigned flags, bool per_thread) {
  REMORA_REQUIRE((flags & ~1u) == 0);
  REMORA_USE_STREAM(stream, stream_handle, per_thread);
  Event* event = find_event(handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (const auto record = event->last_record()) {
    stream.context->submit_always(stream.stream, [] {}, {record->mark});
  }
  return CUDA_SUCCESS;
}

CUresult synchronize_stream(CUstream handle, bool per_thread) {
  REMORA_USE_STREAM(stream, handle, per_thread);
  for (const Mark& mark : stream.context->marks_of(stream.stream)) mark.wait();
  return stream.context->failed.load();
}

CUresult query_stream(CUstream handle, bool per_thread) {
  REMORA_USE_STREAM(stream, handle, per_thread);
  for (const Mark& mark : stream.context->marks_of(stream.stream)) {
    if (!mark.reached()) return CUDA_ERROR_NOT_READY;
  }
  return stream.context->failed.load();
}

CUresult launch_host_function(CUstream handle, CUhostFn function, void* data, bool per_thread) {
  REMORA_REQUIRE(function != nullptr);
  REMORA_USE_STREAM(stream, handle, per_thread);
  stream.context->submit(stream.stream, [function, data] { function(data); });
  return CUDA_SUCCESS;
}

CUresult add_callback(CUstream handle, CUstreamCallback callback, void* data, unsigned flags,
                      bool per_thread) {
  REMORA_REQUIRE(callback != nullptr && flags == 0);
  REMORA_USE_STREAM(stream, handle, per_thread);
  stream.context->submit_always(
      stream.stream, [context = stream.context, handle, callback, data] {
        callback(handle, context->failed.load(), data);
      });
  return CUDA_SUCCESS;
}

}  // namespace

REMORA_API(cuStreamCreate)(CUstream* handle, unsigned int flags) {
  return create_stream(handle, flags, 0);
}
REMORA_API(cuStreamCreateWithPriority)(CUstream* handle, unsigned int flags, int priority) {
  return create_stream(handle, flags, priority);
}
REMORA_API(cuStreamDestroy_v2)(CUstream handle) {
  REMORA_USE_STREAM(stream, handle, false);
  // The default streams are nobody's to destroy.
  if (!Driver::get()->handles.is(handle, Handles::Kind::stream)) return CUDA_ERROR_INVALID_HANDLE;
  Driver::get()->handles.remove(handle);
  stream.context->retire(stream.stream.get());
  return CUDA_SUCCESS;
}

// Every call with a stream has a twin in which stream 0 is the calling thread's own.
REMORA_API(cuStreamWaitEvent)(CUstream s, CUevent e, unsigned int f) { return wait_event(s, e, f, false); }
REMORA_API(cuStreamWaitEvent_ptsz)(CUstream s, CUevent e, unsigned int f) { return wait_event(s, e, f, true); }
REMORA_API(cuStreamSynchronize)(CUstream s) { return synchronize_stream(s, false); }
REMORA_API(cuStreamSynchronize_ptsz)(CUstream s) { return synchronize_stream(s, true); }
REMORA_API(cuStreamQuery)(CUstream s) { return query_stream(s, false); }
REMORA_API(cuStreamQuery_ptsz)(CUstream s) { return query_stream(s, true); }
REMORA_API(cuLaunchHostFunc)(CUstream s, CUhostFn f, void* d) { return launch_host_function(s, f, d, false); }
REMORA_API(cuLaunchHostFunc_ptsz)(CUstream s, CUhostFn f, void* d) { return launch_host_function(s, f, d, true); }
REMORA_API(cuStreamAddCallback)(CUstream s, CUstreamCallback c, void* d, unsigned int f) { return add_callback(s, c, d, f, false); }
REMORA_API(cuStreamAddCallback_ptsz)(CUstream s, CUstreamCallback c, void* d, unsigned int f) { return add_callback(s, c, d, f, true); }

REMORA_API(cuStreamGetPriority)(CUstream handle, int* priority) {
  REMORA_REQUIRE(priority != nullptr);
  REMORA_USE_STREAM(stream, handle, false);
  *priority = stream.stream->priority();
  return CUDA_SUCCESS;
}
REMORA_API(cuStreamGetFlags)(CUstream handle, unsigned int* flags) {
  REMORA_REQUIRE(flags != nullptr);
  REMORA_USE_STREAM(stream, handle, false);
  *flags = stream.stream->flags();
  return CUDA_SUCCESS;
}
REMORA_API(cuStreamGetCtx)(CUstream handle, CUcontext* out) {
  REMORA_REQUIRE(out != nullptr);
  REMORA_USE_STREAM(stream, handle, false);
  *out = reinterpret_cast<CUcontext>(stream.context);
  return CUDA_SUCCESS;
}
REMORA_API(cuStreamGetId)(CUstream handle, unsigned long long* id) {
  REMORA_REQUIRE(id != nullptr);
  REMORA_USE_STREAM(stream, handle, false);
  *id = stream.stream->id();
  return CUDA_SUCCESS;
}
REMORA_API(cuStreamGetDevice)(CUstream handle, CUdevice* device) {
  REMORA_REQUIRE(device != nullptr);
  REMORA_USE_STREAM(stream, handle, false);
  *device = stream.context->device->ordinal;
  return CUDA_SUCCESS;
}
/// Capture is refused, so no stream is ever capturing.
REMORA_API(cuStreamIsCapturing)(CUstream handle, CUstreamCaptureStatus* status) {
  REMORA_REQUIRE(status != nullptr);
  REMORA_USE_STREAM(stream, handle, false);
  *status = CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}

// --- Events ------------------------------------------------------------------------------------

REMORA_API(cuEventCreate)(CUevent* handle, unsigned int flags) {
  REMORA_REQUIRE(handle != nullptr && (flags & ~7u) == 0);
  if (flags & CU_EVENT_INTERPROCESS) return CUDA_ERROR_NOT_SUPPORTED;
  REMORA_USE_CONTEXT(context);
  auto event = std::make_unique<Event>();
  event->flags = flags;
  event->context = context;
  *handle = reinterpret_cast<CUevent>(event.get());
  Driver::get()->handles.add(event.get(), Handles::Kind::event);
  const std::lock_guard hold(context->ordering);
  context->events[event.get()] = std::move(event);
  return CUDA_SUCCESS;
}
REMORA_API(cuEventDestroy_v2)(CUevent handle) {
  REMORA_USE_CONTEXT(context);
  Event* event = find_event(handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Driver::get()->handles.remove(handle);
  Context& owner = *event->context;
  const std::lock_guard hold(owner.ordering);
  owner.events.erase(event);
  return CUDA_SUCCESS;
}

REMORA_API(cuEventRecord)(CUevent e, CUstream s) { return record_event(e, s, 0, false); }
REMORA_API(cuEventRecord_ptsz)(CUevent e, CUstream s) { return record_event(e, s, 0, true); }
REMORA_API(cuEventRecordWithFlags)(CUevent e, CUstream s, unsigned int f) { return record_event(e, s, f, false); }
REMORA_API(cuEventRecordWithFlags_ptsz)(CUevent e, CUstream s, unsigned int f) { return record_event(e, s, f, true); }

REMORA_API(cuEventQuery)(CUevent handle) {
  REMORA_USE_CONTEXT(context);
  Event* event = find_event(handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const auto record = event->last_record();
  return !record || record->mark.reached() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

REMORA_API(cuEventSynchronize)(CUevent handle) {
  REMORA_USE_CONTEXT(context);
  Event* event = find_event(handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (const auto record = event->last_record()) record->mark.wait();
  return context->failed.load();
}

REMORA_API(cuEventElapsedTime_v2)(float* milliseconds, CUevent begin, CUevent end) {
  REMORA_REQUIRE(milliseconds != nullptr);
  REMORA_USE_CONTEXT(context);
  std::uint64_t times[2];
  const CUevent handles[2] = {begin, end};
  for (int i = 0; i < 2; ++i) {
    Event* event = find_event(handles[i]);
    if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    const auto record = event->last_record();
    if (!record || (event->flags & CU_EVENT_DISABLE_TIMING)) return CUDA_ERROR_INVALID_HANDLE;
    if (!record->mark.reached()) return CUDA_ERROR_NOT_READY;
    times[i] = record->time_ns->load();
  }
  *milliseconds = static_cast<float>(static_cast<double>(static_cast<std::int64_t>(times[1] - times[0])) / 1e6);
  return CUDA_SUCCESS;
}
REMORA_API(cuEventElapsedTime)(float* milliseconds, CUevent begin, CUevent end) {
  return cuEventElapsedTime_v2(milliseconds, begin, end);
}
