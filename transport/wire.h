// SPDX-License-Identifier: Apache-2.0
// What a transport must be able to do, and no more: send one message, announce and fetch bulk
// bytes, make progress, and sleep. `ucx/` is the real one, `fake/` an in-memory pair for tests.
// Everything with logic (order, acknowledgement, waiting, transfers) stands above and knows only
// this.
//
// Threads: none of its own that call back. Every call is made under the Endpoint's lock, and the
// handler is called only from within progress(), send() or fetch(), under the same lock; it must
// not call back into the wire.
#pragma once

#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "base/result.h"

namespace remora::transport {

/// Names bulk bytes that the peer has announced and not yet given; valid until fetch() or drop().
using AnnouncementId = std::uint64_t;

struct BulkHeader {
  std::uint64_t transfer = 0;
  std::uint64_t offset = 0;      // of this chunk in the transfer
  std::uint64_t size_bytes = 0;  // of this chunk
};

class WireHandler {
 public:
  /// A message of the peer. The bytes may be shared with it: copy, then look. Valid during the
  /// call.
  virtual void message_arrived(Bytes message) = 0;
  /// The peer has a chunk for us. Nothing moves before fetch().
  virtual void chunk_announced(const BulkHeader& header, AnnouncementId announcement) = 0;
  /// A send() or announce() with this cookie no longer needs its buffer. For announce(): the peer
  /// has fetched it, or the wire failed.
  virtual void send_finished(void* cookie, bool ok) = 0;
  /// The fetch() with this cookie is over; with ok, all bytes are in the destination.
  virtual void fetch_finished(void* cookie, bool ok) = 0;
  /// The peer or the path to it is gone.
  virtual void wire_failed(Error error) = 0;

 protected:
  ~WireHandler() = default;
};

class Wire {
 public:
  virtual ~Wire() = default;

  virtual void set_handler(WireHandler* handler) = 0;
  virtual Bytes address() const = 0;
  virtual Result<> connect(Bytes peer_address) = 0;

  /// Sends one message. `bytes` stays valid and unchanged until send_finished(cookie), which may
  /// come before send() returns.
  virtual void send(Bytes message, void* cookie) = 0;
  /// Offers a chunk; as send(), but no byte leaves before the peer fetches.
  virtual void announce(const BulkHeader& header, const std::byte* data, void* cookie) = 0;
  virtual void fetch(AnnouncementId announcement, MutableBytes destination, void* cookie) = 0;
  virtual void drop(AnnouncementId announcement) = 0;

  /// Returns true when something happened.
  virtual bool progress() = 0;
  /// Readable when progress() has work, provided arm() returned true since the last progress().
  virtual int event_descriptor() const = 0;
  /// False: there is work already, call progress() first.
  virtual bool arm() = 0;

  /// Ends the connection: every operation finishes, not ok, before it returns; afterwards no buffer
  /// is in use and the handler is not called. Nothing but the destructor may follow.
  virtual void close() = 0;

  /// "posix, cma": the paths that carry bytes, as a person wants to see them in a log line.
  virtual std::string description() const = 0;
};

}  // namespace remora::transport
