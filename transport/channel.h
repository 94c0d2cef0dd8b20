// SPDX-License-Identifier: Apache-2.0
// An ordered, acknowledged stream of opaque records in each direction, over an Endpoint: the
// command stream one way, replies and completions the other.
//
// Sequence numbers are 1, 2, 3 … in the order in which records are committed, across all threads,
// since CUDA's order between threads is the order in which calls return. Records travel in batches:
// one goes out at once while few messages are unacknowledged, several together when the sender is
// ahead of the wire. There is no timer. A batch is kept until the peer has consumed it.
//
// A record begins with its own size in bytes as u32, a multiple of 8; the rest is opaque here.
//
// Completion: acknowledged() >= n means that the peer's receiver has consumed record n; not that it
// has executed it.
//
// Threads: begin() and everything else from any thread. The receiver is called by one thread at a
// time, in order, with no lock held; it may post.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/result.h"
#include "transport/endpoint.h"

namespace remora::transport {

struct ChannelOptions {
  std::size_t batch_bytes = 16 << 10;    // a batch is closed when the next record would pass it
  std::uint32_t messages_in_flight = 4;  // up to here a record goes out at once; beyond,
                                         // when its batch is full or flush() asks
  std::size_t unacknowledged_limit = 64 << 20;  // begin() waits beyond; counted as a stall
  std::size_t inbound_limit = 256 << 20;  // received and not yet consumed: beyond, a violation
};

enum class Consumed { yes, later };

/// Takes records in order. `later` keeps the record and all after it until the next progress.
/// The bytes are ours alone and valid during the call.
class Receiver {
 public:
  virtual Consumed consume(std::uint64_t sequence, Bytes record) = 0;
  virtual void channel_failed(const Error& /*error*/) {}

 protected:
  ~Receiver() = default;
};

class Channel final : private EndpointPart {
 public:
  Channel(Endpoint& endpoint, Receiver& receiver, ChannelOptions options = {});
  ~Channel();

  /// Room for one record; holds the endpoint's lock: fill it and commit, do nothing else.
  class Posting {
   public:
    Posting(Posting&& other) noexcept;
    Posting(const Posting&) = delete;
    Posting& operator=(const Posting&) = delete;
    ~Posting();  // without commit: nothing was posted

    /// False when the channel has failed; data() is then null.
    explicit operator bool() const { return channel_ != nullptr; }
    std::byte* data() const { return data_; }
    std::uint64_t sequence() const { return sequence_; }
    /// `bytes` is the record's size: as in its first word, at most what begin() asked for.
    void commit(std::size_t bytes);

   private:
    friend class Channel;
    Posting() = default;
    Channel* channel_ = nullptr;
    std::byte* data_ = nullptr;
    std::uint64_t sequence_ = 0;
  };

  /// May wait for flow control (never while anything is locked).
  Posting begin(std::size_t max_bytes);

  /// Sends what is batched although much is in flight. Waits for nothing.
  void flush();

  /// Highest sequence that the peer has consumed.
  std::uint64_t acknowledged() const { return acknowledged_.load(std::memory_order_acquire); }
  /// Highest sequence committed here.
  std::uint64_t posted() const { return posted_.load(std::memory_order_acquire); }

  Endpoint& endpoint() { return endpoint_; }

 private:
  struct Batch;
  struct Inbound {
    std::vector<std::byte> message;
    std::size_t next = 0;  // offset of the next record to consume
    std::uint64_t next_sequence = 0;
    std::uint32_t records_left = 0;
  };

  void message_arrived_locked(Bytes message) override;
  void after_progress_locked() override;
  void before_sleep_locked() override;
  bool consume() override;
  void failed(const Error& error) override;

  Batch* new_batch_locked(std::size_t record_bytes);
  void commit_locked(std::size_t bytes);
  void send_current_locked();
  void send_locked(std::unique_ptr<Batch> batch, std::deque<std::unique_ptr<Batch>>& list);
  void acknowledge_locked();
  void take_acknowledgement_locked(std::uint64_t consumed_by_peer);
  void reclaim_locked(std::deque<std::unique_ptr<Batch>>& list);
  bool consume_records(Inbound& inbound);
  Inbound* front();
  void drop_front();
  static Error violation(const char* what);

  Endpoint& endpoint_;
  Receiver& receiver_;
  const ChannelOptions options_;

  // Sending, under the endpoint's lock.
  std::unique_ptr<Batch> current_;                       // being filled, may be null
  std::deque<std::unique_ptr<Batch>> in_flight_;         // sent, in order, not acknowledged
  std::deque<std::unique_ptr<Batch>> acknowledgements_;  // messages without records, being sent
  std::vector<std::unique_ptr<Batch>> pool_;
  std::uint64_t next_sequence_ = 1;
  std::atomic<std::size_t> unacknowledged_bytes_{0};
  std::atomic<std::uint64_t> posted_{0};
  std::atomic<std::uint64_t> acknowledged_{0};

  // Receiving.
  std::deque<Inbound> inbound_;             // in order; under the lock
  std::map<std::uint64_t, Inbound> early_;  // by first sequence; under the lock
  std::uint64_t expected_sequence_ = 1;     // under the lock
  std::size_t inbound_bytes_ = 0;           // under the lock
  std::atomic<bool> has_inbound_{false};
  std::atomic<std::uint64_t> consumed_{0};
  std::uint64_t consumed_told_ = 0;       // under the lock: last acknowledged
  std::uint32_t batches_since_told_ = 0;  // under the lock
};

}  // namespace remora::transport
