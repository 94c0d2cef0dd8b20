// SPDX-License-Identifier: Apache-2.0
#include "transport/channel.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace remora::transport {
namespace {

/// What every message of a channel starts with; docs/wire-format.md.
struct MessageHeader {
  std::uint64_t first_sequence = 0;  // of its records; 0 when it has none
  std::uint64_t consumed = 0;        // highest record of the other direction that was consumed
  std::uint32_t records = 0;
  std::uint32_t reserved = 0;
};
static_assert(sizeof(MessageHeader) == 24);

constexpr std::size_t kLeastRecord = 8;
constexpr std::size_t kPoolLimit = 64;

}  // namespace

/// One message: header and records. Kept until the peer has consumed it and UCX let go of it.
struct Channel::Batch final : WireCompletion {
  explicit Batch(std::size_t capacity)
      : bytes(std::make_unique_for_overwrite<std::byte[]>(capacity)), capacity(capacity) {}

  void finished_locked(bool /*ok*/) override { sending = false; }
  std::uint64_t last_sequence() const { return first_sequence + records - 1; }
  void clear() {
    size = sizeof(MessageHeader);
    records = 0;
  }

  std::unique_ptr<std::byte[]> bytes;
  std::size_t capacity;
  std::size_t size = sizeof(MessageHeader);
  std::uint64_t first_sequence = 0;
  std::uint32_t records = 0;
  bool sending = false;
};

Channel::Channel(Endpoint& endpoint, Receiver& receiver, ChannelOptions options)
    : endpoint_(endpoint), receiver_(receiver), options_(options) {
  endpoint_.attach(this);
}

Channel::~Channel() { endpoint_.close(); }

Error Channel::violation(const char* what) {
  return {ErrorKind::invalid_input, 0,
          fmt::format("The peer sends a malformed message: {}.", what)};
}

// --- Sending -----------------------------------------------------------------------------------

Channel::Posting::Posting(Posting&& other) noexcept
    : channel_(std::exchange(other.channel_, nullptr)),
      data_(other.data_),
      sequence_(other.sequence_) {}

Channel::Posting::~Posting() {
  if (channel_ != nullptr) channel_->endpoint_.unlock();
}

void Channel::Posting::commit(std::size_t bytes) {
  Channel* channel = std::exchange(channel_, nullptr);
  channel->commit_locked(bytes);
  channel->endpoint_.unlock();
}

Channel::Posting Channel::begin(std::size_t max_bytes) {
  Posting posting;
  const auto has_room = [&] {
    const std::size_t pending = unacknowledged_bytes_.load(std::memory_order_acquire);
    return pending == 0 || pending + max_bytes <= options_.unacknowledged_limit;
  };
  if (!has_room()) {
    endpoint_.counters().stalls.fetch_add(1, std::memory_order_relaxed);
    flush();
    endpoint_.wait(has_room, Deadline::never());
  }
  if (endpoint_.has_failed()) return posting;
  endpoint_.lock();
  if (current_ != nullptr && current_->size + max_bytes > current_->capacity) send_current_locked();
  if (current_ == nullptr) current_.reset(new_batch_locked(max_bytes));
  posting.channel_ = this;
  posting.data_ = current_->bytes.get() + current_->size;
  posting.sequence_ = next_sequence_;
  return posting;
}

Channel::Batch* Channel::new_batch_locked(std::size_t record_bytes) {
  const std::size_t needed = sizeof(MessageHeader) + record_bytes;
  if (needed <= options_.batch_bytes && !pool_.empty()) {
    Batch* batch = pool_.back().release();
    pool_.pop_back();
    batch->clear();
    return batch;
  }
  return new Batch(std::max(needed, options_.batch_bytes));
}

void Channel::commit_locked(std::size_t bytes) {
  Batch& batch = *current_;
  if (batch.records == 0) batch.first_sequence = next_sequence_;
  ++batch.records;
  batch.size += bytes;
  posted_.store(next_sequence_++, std::memory_order_release);
  unacknowledged_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  if (in_flight_.size() < options_.messages_in_flight) send_current_locked();
}

void Channel::flush() {
  endpoint_.lock();
  send_current_locked();
  endpoint_.unlock();
}

void Channel::send_current_locked() {
  if (current_ == nullptr || current_->records == 0) return;
  send_locked(std::move(current_), in_flight_);
}

void Channel::send_locked(std::unique_ptr<Batch> batch, std::deque<std::unique_ptr<Batch>>& list) {
  consumed_told_ = consumed_.load(std::memory_order_relaxed);
  batches_since_told_ = 0;
  const MessageHeader header{batch->records != 0 ? batch->first_sequence : 0, consumed_told_,
                             batch->records, 0};
  store_unaligned(batch->bytes.get(), header);
  batch->sending = true;
  list.push_back(std::move(batch));
  Batch* sent = list.back().get();
  endpoint_.send_locked(bytes_of(sent->bytes.get(), sent->size), sent);
}

void Channel::acknowledge_locked() {
  if (consumed_.load(std::memory_order_relaxed) == consumed_told_) return;
  send_locked(std::unique_ptr<Batch>(new_batch_locked(0)), acknowledgements_);
}

/// What the wire has let go of returns to the pool: from the front, the rest follows later.
void Channel::reclaim_locked(std::deque<std::unique_ptr<Batch>>& list) {
  while (!list.empty() && !list.front()->sending) {
    const bool answered =
        list.front()->records == 0 ||
        list.front()->last_sequence() <= acknowledged_.load(std::memory_order_relaxed);
    if (!answered) break;
    if (list.front()->capacity == options_.batch_bytes && pool_.size() < kPoolLimit) {
      pool_.push_back(std::move(list.front()));
    }
    list.pop_front();
  }
}

void Channel::after_progress_locked() {
  reclaim_locked(in_flight_);
  reclaim_locked(acknowledgements_);
  if (in_flight_.size() < options_.messages_in_flight) send_current_locked();
}

void Channel::before_sleep_locked() { acknowledge_locked(); }

void Channel::take_acknowledgement_locked(std::uint64_t consumed_by_peer) {
  // Messages may overtake one another: an older acknowledgement says nothing new.
  if (consumed_by_peer <= acknowledged_.load(std::memory_order_relaxed)) return;
  std::size_t bytes = 0;
  for (const auto& batch : in_flight_) {
    const std::uint64_t last = batch->last_sequence();
    if (last > consumed_by_peer) break;
    if (last > acknowledged_.load(std::memory_order_relaxed)) {
      bytes += batch->size - sizeof(MessageHeader);
    }
  }
  acknowledged_.store(consumed_by_peer, std::memory_order_release);
  unacknowledged_bytes_.fetch_sub(bytes, std::memory_order_release);
}

// --- Receiving ---------------------------------------------------------------------------------

void Channel::message_arrived_locked(Bytes message) {
  const auto header = load_at<MessageHeader>(message, 0);
  if (!header || header->reserved != 0) return endpoint_.fail_locked(violation("no header"));
  if (header->consumed > posted_.load(std::memory_order_relaxed)) {
    return endpoint_.fail_locked(violation("it has consumed what was never sent"));
  }
  take_acknowledgement_locked(header->consumed);

  const std::size_t bytes = message.size() - sizeof(MessageHeader);
  if (header->records == 0) {
    if (bytes != 0) endpoint_.fail_locked(violation("an acknowledgement with a body"));
    return;
  }
  if (bytes / kLeastRecord < header->records) {
    return endpoint_.fail_locked(violation("more records than bytes"));
  }
  if (header->first_sequence < expected_sequence_ || early_.contains(header->first_sequence)) {
    return endpoint_.fail_locked(violation("a record twice"));
  }
  if (bytes > options_.inbound_limit - inbound_bytes_) {
    return endpoint_.fail_locked(violation("more than the flow control allows"));
  }
  inbound_bytes_ += bytes;
  early_.emplace(header->first_sequence,
                 Inbound{{message.begin() + sizeof(MessageHeader), message.end()},
                         0,
                         header->first_sequence,
                         header->records});
  for (auto next = early_.begin(); next != early_.end() && next->first == expected_sequence_;
       next = early_.erase(next)) {
    expected_sequence_ += next->second.records_left;
    inbound_.push_back(std::move(next->second));
  }
  has_inbound_.store(!inbound_.empty(), std::memory_order_release);
}

Channel::Inbound* Channel::front() {
  endpoint_.lock();
  Inbound* inbound = inbound_.empty() ? nullptr : &inbound_.front();
  endpoint_.unlock();
  return inbound;
}

void Channel::drop_front() {
  endpoint_.lock();
  inbound_bytes_ -= inbound_.front().message.size();
  inbound_.pop_front();
  has_inbound_.store(!inbound_.empty(), std::memory_order_relaxed);
  if (++batches_since_told_ >= std::max(options_.messages_in_flight / 2, 1u)) acknowledge_locked();
  endpoint_.unlock();
}

bool Channel::consume() {
  if (!has_inbound_.load(std::memory_order_acquire)) return false;
  bool something = false;
  // A deque's front stays where it is while others push; only the consumer pops.
  while (!endpoint_.has_failed()) {
    Inbound* inbound = front();
    if (inbound == nullptr) break;
    const std::uint32_t before = inbound->records_left;
    const bool finished = consume_records(*inbound);
    something |= inbound->records_left != before;
    if (!finished) break;
    drop_front();
  }
  return something;
}

/// True when all of the message was consumed.
bool Channel::consume_records(Inbound& inbound) {
  while (inbound.records_left != 0) {
    const Bytes rest = Bytes(inbound.message).subspan(inbound.next);
    const auto size = load_at<std::uint32_t>(rest, 0);
    if (!size || *size < kLeastRecord || *size % 8 != 0 || *size > rest.size()) {
      endpoint_.fail(violation("a record of an impossible size"));
      return false;
    }
    if (receiver_.consume(inbound.next_sequence, rest.first(*size)) == Consumed::later)
      return false;
    consumed_.store(inbound.next_sequence++, std::memory_order_release);
    inbound.next += *size;
    --inbound.records_left;
  }
  if (inbound.next == inbound.message.size()) return true;
  endpoint_.fail(violation("bytes after the last record"));
  return false;
}

void Channel::failed(const Error& error) { receiver_.channel_failed(error); }

}  // namespace remora::transport
