// SPDX-License-Identifier: Apache-2.0
#include "transport/bulk.h"

#include <algorithm>
#include <utility>

namespace remora::transport {

/// One chunk on its way out.
struct Bulk::Chunk final : WireCompletion {
  Transfer* transfer = nullptr;
  void finished_locked(bool ok) override;
};

/// Bytes that the caller gave us to send: announced chunk by chunk.
struct Bulk::Transfer {
  Bulk* bulk;
  std::uint64_t number;
  std::uint64_t offset;  // of data in the transfer
  Bytes data;
  Done done;
  std::size_t announced = 0;    // bytes
  std::uint32_t in_flight = 0;  // chunks
  bool announcing = false;
  bool broken = false;
};

/// One chunk that the caller wants.
struct Bulk::Fetch final : WireCompletion {
  Bulk* bulk;
  MutableBytes destination;
  Done done;

  Fetch(Bulk* bulk, MutableBytes destination, Done done)
      : bulk(bulk), destination(destination), done(std::move(done)) {}
  void finished_locked(bool ok) override;
};

Bulk::Bulk(Endpoint& endpoint, BulkOptions options) : endpoint_(endpoint), options_(options) {
  endpoint_.attach(this);
}

Bulk::~Bulk() { endpoint_.close(); }

// --- Sending -----------------------------------------------------------------------------------

void Bulk::send(std::uint64_t transfer, Bytes data, Done done) {
  send_chunk(transfer, 0, data, std::move(done));
}

void Bulk::send_chunk(std::uint64_t transfer, std::uint64_t offset, Bytes data, Done done) {
  auto outgoing =
      std::make_unique<Transfer>(Transfer{this, transfer, offset, data, std::move(done)});
  Transfer* raw = outgoing.get();
  endpoint_.lock();
  if (data.empty() || endpoint_.has_failed()) {
    finish_locked(std::move(raw->done), data.empty() ? Result<>{} : Result<>{failure()});
  } else {
    outgoing_.emplace(raw, std::move(outgoing));
    announce_more_locked(raw);
  }
  endpoint_.unlock();
  if (data.empty()) endpoint_.consume_all();
  consume_if_failed();
}

void Bulk::announce_more_locked(Transfer* transfer) {
  if (transfer->announcing) return;  // a chunk finished within announce(): the loop below goes on
  transfer->announcing = true;
  while (!transfer->broken && transfer->announced < transfer->data.size() &&
         transfer->in_flight < options_.chunks_announced) {
    const std::size_t size =
        std::min(options_.chunk_bytes, transfer->data.size() - transfer->announced);
    const BulkHeader header{transfer->number, transfer->offset + transfer->announced, size};
    const std::byte* data = transfer->data.data() + transfer->announced;
    transfer->announced += size;
    ++transfer->in_flight;
    auto* chunk = new Chunk;
    chunk->transfer = transfer;
    endpoint_.announce_locked(header, data, chunk);
  }
  transfer->announcing = false;
  if (transfer->in_flight == 0) {
    finish_locked(std::move(transfer->done), transfer->broken ? Result<>{failure()} : Result<>{});
    outgoing_.erase(transfer);
  }
}

void Bulk::Chunk::finished_locked(bool ok) {
  Transfer* of = transfer;
  delete this;
  --of->in_flight;
  of->broken |= !ok;
  of->bulk->announce_more_locked(of);
}

// --- Receiving ---------------------------------------------------------------------------------

void Bulk::accept(std::uint64_t transfer, std::uint64_t offset, MutableBytes destination,
                  Done done) {
  auto fetch = std::make_unique<Fetch>(this, destination, std::move(done));
  const Key key{transfer, offset};
  endpoint_.lock();
  if (endpoint_.has_failed()) {
    finish_locked(std::move(fetch->done), failure());
  } else if (const auto found = announced_.find(key); found != announced_.end()) {
    const Announced announced = found->second;
    announced_.erase(found);
    start_fetch_locked(std::move(fetch), announced);
  } else {
    wanted_.emplace(key, std::move(fetch));
  }
  endpoint_.unlock();
  consume_if_failed();
}

void Bulk::accept_all(std::uint64_t transfer, MutableBytes destination, Done done) {
  const std::size_t size = destination.size();
  if (size <= options_.chunk_bytes && size != 0) {
    return accept(transfer, 0, destination, std::move(done));
  }
  // Chunks finish one at a time, in the consuming thread: no lock.
  struct Whole {
    std::size_t chunks_left;
    Result<> result;
    Done done;
  };
  const std::size_t chunks = (size + options_.chunk_bytes - 1) / options_.chunk_bytes;
  if (chunks == 0) {
    endpoint_.lock();
    finish_locked(std::move(done), {});
    endpoint_.unlock();
    endpoint_.consume_all();
    return;
  }
  const auto whole = std::make_shared<Whole>(Whole{chunks, {}, std::move(done)});
  for (std::size_t offset = 0; offset < size; offset += options_.chunk_bytes) {
    accept(transfer, offset,
           destination.subspan(offset, std::min(options_.chunk_bytes, size - offset)),
           [whole](Result<> result) {
             if (!result.ok() && whole->result.ok()) whole->result = std::move(result);
             if (--whole->chunks_left == 0) whole->done(std::move(whole->result));
           });
  }
}

void Bulk::chunk_announced_locked(const BulkHeader& header, AnnouncementId announcement) {
  const Key key{header.transfer, header.offset};
  const Announced announced{announcement, header.size_bytes};
  if (const auto found = wanted_.find(key); found != wanted_.end()) {
    // The wire must not be called from within its own progress.
    startable_.emplace_back(std::move(found->second), announced);
    wanted_.erase(found);
    return;
  }
  if (announced_.size() >= options_.unaccepted_limit) {
    return endpoint_.fail_locked(
        {ErrorKind::invalid_input, 0, "The peer announces more chunks than it was asked for."});
  }
  if (!announced_.emplace(key, announced).second) {
    endpoint_.fail_locked({ErrorKind::invalid_input, 0, "The peer announces a chunk twice."});
  }
}

void Bulk::after_progress_locked() {
  for (auto& [fetch, announced] : std::exchange(startable_, {})) {
    start_fetch_locked(std::move(fetch), announced);
  }
}

void Bulk::start_fetch_locked(std::unique_ptr<Fetch> fetch, const Announced& announced) {
  if (announced.size_bytes != fetch->destination.size()) {
    endpoint_.drop_locked(announced.announcement);
    endpoint_.fail_locked(
        {ErrorKind::invalid_input, 0, "The peer announces a chunk of another size than agreed."});
    return finish_locked(std::move(fetch->done), failure());
  }
  Fetch* raw = fetch.get();
  fetching_.emplace(raw, std::move(fetch));
  endpoint_.fetch_locked(announced.announcement, raw->destination, raw);
}

void Bulk::Fetch::finished_locked(bool ok) {
  bulk->finish_locked(std::move(done), ok ? Result<>{} : Result<>{bulk->failure()});
  bulk->fetching_.erase(this);
}

// --- Completion --------------------------------------------------------------------------------

void Bulk::finish_locked(Done done, Result<> result) {
  finished_.emplace_back(std::move(done), std::move(result));
  has_finished_.store(true, std::memory_order_release);
}

bool Bulk::consume() {
  if (!has_finished_.load(std::memory_order_acquire)) return false;
  endpoint_.lock();
  auto finished = std::exchange(finished_, {});
  has_finished_.store(false, std::memory_order_relaxed);
  endpoint_.unlock();
  for (auto& [done, result] : finished) done(std::move(result));
  return !finished.empty();
}

/// What the wire knew has finished already, with an error, when the endpoint closed it.
void Bulk::failed(const Error& error) {
  endpoint_.lock();
  for (auto& [key, fetch] : wanted_) finish_locked(std::move(fetch->done), error);
  wanted_.clear();
  for (auto& [fetch, announced] : startable_) finish_locked(std::move(fetch->done), error);
  startable_.clear();
  endpoint_.unlock();
}

Error Bulk::failure() const {
  if (endpoint_.has_failed()) return endpoint_.failure();
  return {ErrorKind::unavailable, 0, "The transfer was cut off."};
}

void Bulk::consume_if_failed() {
  if (endpoint_.has_failed()) endpoint_.consume_all();
}

}  // namespace remora::transport
