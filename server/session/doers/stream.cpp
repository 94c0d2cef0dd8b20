// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "server/doers.h"
#include "server/session/session.h"

namespace remora::server::doers {
namespace {

/// Makes the object, and its driver stream as the first thing in its own lane.
template <typename Create>
void create_stream(Session& session, Command command, protocol::ObjectId id, unsigned flags, bool legacy,
                   Create create) {
  Context* const context = session.context_of(command);
  if (context == nullptr) return session.reject(command, CUDA_ERROR_INVALID_CONTEXT);
  Stream* const stream =
      session.streams().insert(id, std::make_unique<Stream>(session, *context, id, flags, legacy));
  if (stream == nullptr) return session.reject(command, CUDA_ERROR_INVALID_HANDLE);
  context->streams.push_back(stream);
  if (legacy) context->legacy = stream;
  const std::uint64_t sequence = command.sequence;
  auto work = work_of([&session, stream, create, command = std::move(command)] {
    CUresult result = stream->context.failed;
    if (result == CUDA_SUCCESS) result = stream->context.create_result;
    if (result == CUDA_SUCCESS) {
      session.make_current(stream->context);
      result = create(stream->handle);
    }
    session.settle(command, result);
    return Step::done;
  });
  session.scheduler().add(*stream, sequence, std::move(work), {context->ready});
}

}  // namespace

void cuStreamCreate(Session& session, Command command, const protocol::cuStreamCreate_call& call) {
  create_stream(session, std::move(command), call.phStream, call.Flags, false,
                [&session, flags = call.Flags](CUstream& handle) {
                  return session.driver().cuStreamCreate(&handle, flags);
                });
}

void cuStreamCreateWithPriority(Session& session, Command command,
                                const protocol::cuStreamCreateWithPriority_call& call) {
  create_stream(session, std::move(command), call.phStream, call.flags, false,
                [&session, flags = call.flags, priority = call.priority](CUstream& handle) {
                  return session.driver().cuStreamCreateWithPriority(&handle, flags, priority);
                });
}

void remora_legacy_stream(Session& session, Command command,
                          const protocol::remora_legacy_stream_call& call) {
  const Context* const context = session.context_of(command);
  if (context != nullptr && context->legacy != nullptr) {
    return session.reject(command, CUDA_ERROR_INVALID_HANDLE);
  }
  create_stream(session, std::move(command), call.stream, 0, true, [](CUstream& handle) {
    handle = CU_STREAM_LEGACY;
    return CUDA_SUCCESS;
  });
}

void cuStreamDestroy_v2(Session& session, Command command, const protocol::cuStreamDestroy_v2_call& call) {
  Stream* const stream = session.find_stream(call.hStream);
  if (stream == nullptr || stream->legacy) return session.reject(command, CUDA_ERROR_INVALID_HANDLE);
  session.retire(*stream, command.sequence);
  session.settle(command, CUDA_SUCCESS);
}

void cuStreamWaitEvent(Session& session, Command command, const protocol::cuStreamWaitEvent_call& call) {
  Stream* const stream = session.find_stream(call.hStream);
  const Event* const event = session.find_event(call.hEvent);
  if (stream == nullptr || event == nullptr) return session.reject(command, CUDA_ERROR_INVALID_HANDLE);
  std::vector<After> after;
  if (event->latest) after.push_back(event->latest->issued);
  session.queue_on_stream(
      std::move(command), *stream,
      [&session, stream, recording = event->latest, flags = call.Flags](const Command&) {
        // What was never recorded has completed, says CUDA.
        if (!recording || recording->handle == nullptr) return CUDA_SUCCESS;
        return session.driver().cuStreamWaitEvent(stream->handle, recording->handle, flags);
      },
      std::move(after));
}

void cuStreamSynchronize(Session& session, Command command, const protocol::cuStreamSynchronize_call& call) {
  Stream* const stream = session.find_stream(call.hStream);
  if (stream == nullptr) return session.reject(command, CUDA_ERROR_INVALID_HANDLE);
  const std::uint64_t sequence = command.sequence;
  auto kept = std::make_shared<Command>(std::move(command));
  session.queue_in_lane(*stream, sequence, work_of([&session, stream, kept] {
                          // The legacy stream also waits for others, of which only the driver knows.
                          if (stream->is_quiet() && !stream->legacy) {
                            session.settle(*kept, stream->context.failed);
                            return Step::done;
                          }
                          stream->launch(0, [&session, kept](CUresult result) { session.settle(*kept, result); });
                          stream->mark();
                          return Step::done;
                        }));
}

}  // namespace remora::server::doers
