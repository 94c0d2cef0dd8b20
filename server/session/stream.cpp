// SPDX-License-Identifier: Apache-2.0
#include "server/session/stream.h"

#include <algorithm>
#include <utility>

#include "server/session/session.h"

namespace remora::server {
namespace {

// A driver blocks in a launch when about a thousand items are queued; we stay well below, and learn
// of progress before the room is used up.
constexpr std::size_t kMostInFlight = 512;
constexpr std::uint64_t kMarkEvery = 128;

struct Marker {
  Session* session;
  Stream* stream;
  std::uint64_t flight;
};

}  // namespace

bool Stream::has_room() { return flights_.size() < kMostInFlight; }

/// When there is nothing more to issue, the client learns how far the stream has come, so that its
/// queries need not ask. One marker is out for that at a time.
void Stream::ran_empty() {
  if (markers_out_ == 0) mark();
}

void Stream::launch(std::uint64_t sequence, Completion on_complete, Command keep) {
  flights_.push_back({sequence, std::move(on_complete), std::move(keep)});
  const std::uint64_t number = first_flight_ + flights_.size() - 1;
  if (number - std::max(marked_, first_flight_ - 1) >= kMarkEvery) mark();
}

void Stream::mark() {
  if (flights_.empty()) return;
  const std::uint64_t last = first_flight_ + flights_.size() - 1;
  if (last <= marked_) return;
  marked_ = last;
  ++markers_out_;
  CUresult result = CUDA_ERROR_INVALID_HANDLE;
  if (handle != nullptr) {
    session_.make_current(context);
    auto marker = std::make_unique<Marker>(&session_, this, last);
    result = session_.driver().cuStreamAddCallback(handle, &Stream::on_marker, marker.get(), 0);
    if (result == CUDA_SUCCESS) {
      (void)marker.release();  // on_marker's now
      return;
    }
  }
  // The context is lost, or the stream never was: nothing will be told about it. Later, since a
  // flight's completion may not come before launch() has returned.
  session_.scheduler().defer([this, last, result] { reached(last, result); });
}

void Stream::on_marker(CUstream, CUresult status, void* opaque) {
  const std::unique_ptr<Marker> marker(static_cast<Marker*>(opaque));
  marker->session->scheduler().defer(
      [stream = marker->stream, flight = marker->flight, status] { stream->reached(flight, status); });
}

void Stream::reached(std::uint64_t flight, CUresult status) {
  --markers_out_;
  if (status != CUDA_SUCCESS) session_.context_failed(context, status);
  std::uint64_t completed = 0;
  while (first_flight_ <= flight) {
    const Flight done = std::move(flights_.front());
    flights_.pop_front();
    ++first_flight_;
    completed = std::max(completed, done.sequence);
    if (done.on_complete) done.on_complete(context.failed);
  }
  if (completed != 0) session_.push(protocol::remora_stream_progress_call{id, completed});
  if (markers_out_ == 0) mark();
  if (dying && flights_.empty() && markers_out_ == 0) session_.bury(*this);
}

}  // namespace remora::server
