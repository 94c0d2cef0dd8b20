// SPDX-License-Identifier: Apache-2.0
// Events are the session's own: a driver event exists only for a record of one (EventPool).
#include <limits>
#include <utility>

#include "server/doers.h"
#include "server/session/session.h"

namespace remora::server::doers {
namespace {

void record(Session& session, Command command, protocol::ObjectId event_id, protocol::ObjectId stream_id,
            unsigned flags) {
  Stream* const stream = session.find_stream(stream_id);
  Event* const event = session.find_event(event_id);
  if (stream == nullptr || event == nullptr) return session.reject(command, CUDA_ERROR_INVALID_HANDLE);
  if (&stream->context != event->context) return session.reject(command, CUDA_ERROR_INVALID_HANDLE);

  const std::uint64_t sequence = command.sequence;
  // The record's own place in the lane is known only after it was added; `here` plus itself.
  After issued = stream->here();
  issued.sequence = sequence;
  auto recording = std::make_shared<Recording>(std::move(issued), event->timed, event->context->events);
  event->latest = recording;
  session.queue_in_lane(
      *stream, sequence,
      work_of([&session, stream, recording, event_id, flags, command = std::move(command)] {
        CUresult result = session.before_call(*stream);
        std::shared_ptr<EventClock::Base> base;
        if (result == CUDA_SUCCESS) {
          const DriverTable& driver = session.driver();
          if (recording->timed) base = stream->context.clock.base_for_now(driver);
          recording->handle = recording->pool->take(driver, recording->timed, result);
          if (result == CUDA_SUCCESS) {
            result = flags == 0
                         ? driver.cuEventRecord(recording->handle, stream->handle)
                         : driver.cuEventRecordWithFlags(recording->handle, stream->handle, flags);
          }
        }
        session.settle(command, result);
        const std::uint64_t sequence = command.sequence;
        stream->launch(sequence, [&session, stream, recording, base, event_id, sequence,
                                  result](CUresult context_result) {
          double time = std::numeric_limits<double>::quiet_NaN();
          if (result == CUDA_SUCCESS && context_result == CUDA_SUCCESS && base) {
            session.make_current(stream->context);
            time = EventClock::time_of(session.driver(), base, recording->handle);
          }
          session.push(protocol::remora_event_done_call{event_id, sequence, time});
        });
        return Step::done;
      }));
}

}  // namespace

void cuEventCreate(Session& session, Command command, const protocol::cuEventCreate_call& call) {
  Context* const context = session.context_of(command);
  if (context == nullptr) return session.reject(command, CUDA_ERROR_INVALID_CONTEXT);
  auto event = std::make_unique<Event>();
  event->id = call.phEvent;
  event->context = context;
  event->timed = (call.Flags & CU_EVENT_DISABLE_TIMING) == 0;
  const bool fresh = session.events().insert(call.phEvent, std::move(event)) != nullptr;
  session.settle(command, fresh ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE);
}

void cuEventRecord(Session& session, Command command, const protocol::cuEventRecord_call& call) {
  record(session, std::move(command), call.hEvent, call.hStream, 0);
}

void cuEventRecordWithFlags(Session& session, Command command,
                            const protocol::cuEventRecordWithFlags_call& call) {
  record(session, std::move(command), call.hEvent, call.hStream, call.flags);
}

void cuEventDestroy_v2(Session& session, Command command, const protocol::cuEventDestroy_v2_call& call) {
  const bool existed = session.events().erase(call.hEvent) != nullptr;
  session.settle(command, existed ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE);
}

}  // namespace remora::server::doers
