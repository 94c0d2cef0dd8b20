// SPDX-License-Identifier: Apache-2.0
// A stream of the session: its lane of work, its driver stream, and what of it is in flight.
//
// A *flight* is what one record became in the driver: known complete when a marker (a callback of the
// driver's) behind it was reached. Flights complete in order; how far they have come is pushed to the
// client, after whatever their completions pushed.
//
// Everything but the constructor and what Lane says is called in the issuing role.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

#include "protocol/handle/object_id.h"
#include "server/driver_table.h"
#include "server/session/command.h"
#include "server/session/scheduler.h"

namespace remora::server {

class Session;
struct Context;

class Stream final : public Lane {
 public:
  using Completion = std::function<void(CUresult)>;

  Stream(Session& session, Context& context, protocol::ObjectId id, unsigned flags, bool legacy)
      : context(context), id(id), flags(flags), legacy(legacy), session_(session) {}

  Context& context;
  const protocol::ObjectId id;
  const unsigned flags;
  const bool legacy;
  CUstream handle = nullptr;  // of the legacy stream the driver's name for it
  bool dying = false;         // its destruction was asked for: goes when all has completed
  std::function<void()> on_buried;

  bool joins_legacy() const { return !legacy && (flags & CU_STREAM_NON_BLOCKING) == 0; }

  /// Notes that the driver has something more in flight. `sequence` becomes known complete with it; 0
  /// for all but the last flight of a record. `keep` lives until then.
  void launch(std::uint64_t sequence, Completion on_complete = {}, Command keep = {});

  /// Asks the driver to tell when all that is in flight now has completed.
  void mark();

  bool is_quiet() const { return flights_.empty(); }

 private:
  struct Flight {
    std::uint64_t sequence;
    Completion on_complete;
    Command keep;
  };

  bool has_room() override;
  void ran_empty() override;
  void reached(std::uint64_t flight, CUresult status);
  static void CUDA_CB on_marker(CUstream stream, CUresult status, void* marker);

  Session& session_;
  std::deque<Flight> flights_;
  std::uint64_t first_flight_ = 1;  // number of flights_.front()
  std::uint64_t marked_ = 0;        // flight that the last marker stands behind
  unsigned markers_out_ = 0;
};

}  // namespace remora::server
