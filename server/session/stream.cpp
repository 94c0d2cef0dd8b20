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

std::uint64_t Stream::launch(std::uint64_t sequence, Completion on_complete, Command keep) {
  flights_.push_back({sequence, std::move(on_complete), std::move(keep)});
  const std::uint64_t number = first_flight_ + flights_.size() - 1;
  if (number - std::max(marked_, first_flight_ - 1) >= kMarkEvery) mark();
  return number;
}

void Stream::hold_back(std::uint64_t flight) { flights_[flight - first_flight_].held = true; }

void Stream::land(std::uint64_t flight) {
  flights_[flight - first_flight_].held = false;
  advance();
}

void Stream::mark() {
  if (flights_.empty() || handle == nullptr) return;
  const std::uint64_t last = first_flight_ + flights_.size() - 1;
  if (last <= marked_) return;
  marked_ = last;
  session_.make_current(context);
  auto marker = std::make_unique<Marker>(&session_, this, last);
  ++markers_out_;
  const CUresult result =
      session_.driver().cuStreamAddCallback(handle, &Stream::on_marker, marker.get(), 0);
  if (result == CUDA_SUCCESS) {
    (void)marker.release();  // on_marker's now
  } else {
    // The context is lost: nothing more will be told about this stream. Later, since a flight's
    // completion may not come before launch() has returned.
    session_.scheduler().defer([this, last, result] { reached(last, result); });
  }
}

void Stream::on_marker(CUstream, CUresult status, void* opaque) {
  const std::unique_ptr<Marker> marker(static_cast<Marker*>(opaque));
  marker->session->scheduler().defer(
      [stream = marker->stream, flight = marker->flight, status] { stream->reached(flight, status); });
}

void Stream::reached(std::uint64_t flight, CUresult status) {
  --markers_out_;
  if (status != CUDA_SUCCESS) session_.context_failed(context, status);
  for (std::uint64_t number = first_flight_; number <= flight; ++number) {
    Flight& one = flights_[number - first_flight_];
    if (std::exchange(one.completed, true)) continue;
    if (const Completion on_complete = std::exchange(one.on_complete, nullptr)) on_complete(context.failed);
  }
  advance();
  if (markers_out_ == 0) mark();
}

void Stream::advance() {
  while (!flights_.empty() && flights_.front().completed && !flights_.front().held) {
    completed_ = std::max(completed_, flights_.front().sequence);
    flights_.pop_front();
    ++first_flight_;
  }
  if (completed_ > announced_) {
    announced_ = completed_;
    session_.push(protocol::remora_stream_progress_call{id, completed_});
  }
  if (dying && flights_.empty() && markers_out_ == 0) session_.bury(*this);
}

}  // namespace remora::server
