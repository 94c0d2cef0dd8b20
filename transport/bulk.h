// SPDX-License-Identifier: Apache-2.0
// Bulk data beside the command stream. The side that has the bytes announces them in chunks; the
// side that wants them accepts each chunk into a destination, and only then do they move. So the
// receiver paces every transfer, whichever direction.
//
// Completion: for the receiver, the bytes are in the destination; for the sender, the source may be
// reused. Nothing orders bulk against the channel: whoever promises bytes in a record lets its peer
// defer that record (Consumed::later) until landed.
//
// Memory: source and destination are any host memory, in use until completion; nothing of it stays
// registered afterwards.
//
// Threads: all functions from any thread; callbacks come from the consuming thread (Endpoint) with
// no lock held, once each, also on failure; after close() none comes. On an endpoint that has
// failed a callback may come before the function returns.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "transport/endpoint.h"

namespace remora::transport {

struct BulkOptions {
  std::size_t chunk_bytes = 1 << 20;
  std::uint32_t chunks_announced = 8;      // of one transfer, at a time
  std::uint32_t unaccepted_limit = 65536;  // chunks announced to us: beyond, a violation
};

class Bulk final : private EndpointPart {
 public:
  using Done = std::function<void(Result<>)>;

  explicit Bulk(Endpoint& endpoint, BulkOptions options = {});
  ~Bulk();

  std::size_t chunk_bytes() const { return options_.chunk_bytes; }

  /// Announces `data` as transfer `transfer` (numbers are the caller's, unique per sending side),
  /// chunk by chunk, several at a time. An empty transfer completes at once and announces nothing.
  void send(std::uint64_t transfer, Bytes data, Done done);
  /// A piece of a transfer that is produced in pieces: at most chunk_bytes, at `offset`.
  void send_chunk(std::uint64_t transfer, std::uint64_t offset, Bytes data, Done done);

  /// Accepts the chunk [offset, offset + destination.size()) of a transfer: the chunk boundaries
  /// are the sender's, multiples of chunk_bytes. A chunk of another size is a violation.
  void accept(std::uint64_t transfer, std::uint64_t offset, MutableBytes destination, Done done);
  /// Accepts all chunks of a transfer of destination.size() bytes.
  void accept_all(std::uint64_t transfer, MutableBytes destination, Done done);

 private:
  struct Transfer;
  struct Chunk;
  struct Fetch;
  struct Key {
    std::uint64_t transfer;
    std::uint64_t offset;
    auto operator<=>(const Key&) const = default;
  };
  struct Announced {
    AnnouncementId announcement;
    std::uint64_t size_bytes;
  };

  void chunk_announced_locked(const BulkHeader& header, AnnouncementId announcement) override;
  void after_progress_locked() override;
  bool consume() override;
  void failed(const Error& error) override;

  void announce_more_locked(Transfer* transfer);
  void start_fetch_locked(std::unique_ptr<Fetch> fetch, const Announced& announced);
  void finish_locked(Done done, Result<> result);
  void consume_if_failed();
  Error failure() const;

  Endpoint& endpoint_;
  const BulkOptions options_;

  // Under the endpoint's lock.
  std::map<Key, Announced> announced_;
  std::map<Key, std::unique_ptr<Fetch>> wanted_;
  std::vector<std::pair<std::unique_ptr<Fetch>, Announced>> startable_;  // by the next progress
  std::unordered_map<Transfer*, std::unique_ptr<Transfer>> outgoing_;
  std::unordered_map<Fetch*, std::unique_ptr<Fetch>> fetching_;
  std::deque<std::pair<Done, Result<>>> finished_;
  std::atomic<bool> has_finished_{false};
};

}  // namespace remora::transport
