// SPDX-License-Identifier: Apache-2.0
// Two endpoints with a channel and bulk each, for tests: over the fake wire, or over UCX by a path
// that is asked for. What one side sends, the other side records.
#pragma once

#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "transport/bulk.h"
#include "transport/channel.h"
#include "transport/endpoint.h"
#include "transport/fake/fake_wire.h"

namespace remora::transport::test {

/// One end. The receiver keeps every record, unless `on_record` decides otherwise.
struct End final : Receiver {
  explicit End(std::unique_ptr<Endpoint> made, ChannelOptions channel_options = {},
               BulkOptions bulk_options = {})
      : endpoint(std::move(made)),
        channel(*endpoint, *this, channel_options),
        bulk(*endpoint, bulk_options) {}
  ~End() { endpoint->close(); }

  Consumed consume(std::uint64_t sequence, Bytes record) override {
    if (on_record) return on_record(sequence, record);
    const std::lock_guard hold(mutex);
    sequences.push_back(sequence);
    records.emplace_back(record.begin(), record.end());
    return Consumed::yes;
  }
  void channel_failed(const Error& error) override {
    const std::lock_guard hold(mutex);
    failures.push_back(error.text);
  }

  /// A record of `size` bytes whose body is filled with `fill`. Its sequence, 0 on failure.
  std::uint64_t post(std::uint32_t size, unsigned char fill) {
    auto posting = channel.begin(size);
    if (!posting) return 0;
    std::memset(posting.data(), fill, size);
    std::memcpy(posting.data(), &size, sizeof size);
    const std::uint64_t sequence = posting.sequence();
    posting.commit(size);
    return sequence;
  }
  std::size_t received() const {
    const std::lock_guard hold(mutex);
    return records.size();
  }

  mutable std::mutex mutex;
  std::vector<std::uint64_t> sequences;
  std::vector<std::vector<std::byte>> records;
  std::vector<std::string> failures;
  std::function<Consumed(std::uint64_t, Bytes)> on_record;
  std::unique_ptr<Endpoint> endpoint;
  Channel channel;
  Bulk bulk;
};

struct Pair {
  std::unique_ptr<End> a, b;
  FakeWire* a_wire = nullptr;
  FakeWire* b_wire = nullptr;

  void start_threads() {
    a->endpoint->start_progress_thread();
    b->endpoint->start_progress_thread();
  }
  ~Pair() {
    // Neither end may be torn down while the other still reads from it.
    if (a) a->endpoint->stop();
    if (b) b->endpoint->stop();
  }
};

struct PairOptions {
  FakeOptions wire;
  EndpointOptions endpoint;
  ChannelOptions channel;
  BulkOptions bulk;
};

inline std::unique_ptr<Pair> make_fake_pair(PairOptions options = {}) {
  auto pair = std::make_unique<Pair>();
  auto [a, b] = fake_pair(options.wire);
  pair->a_wire = a.get();
  pair->b_wire = b.get();
  pair->a = std::make_unique<End>(Endpoint::over(std::move(a), options.endpoint), options.channel,
                                  options.bulk);
  pair->b = std::make_unique<End>(Endpoint::over(std::move(b), options.endpoint), options.channel,
                                  options.bulk);
  return pair;
}

/// `tls` as UCX_TLS takes it.
inline Result<std::unique_ptr<Pair>> make_ucx_pair(const char* tls, PairOptions options = {}) {
  setenv("UCX_TLS", tls, 1);
  options.endpoint.same_host = true;
  REMORA_TRY(auto a, Endpoint::create(options.endpoint));
  REMORA_TRY(auto b, Endpoint::create(options.endpoint));
  auto pair = std::make_unique<Pair>();
  pair->a = std::make_unique<End>(std::move(a), options.channel, options.bulk);
  pair->b = std::make_unique<End>(std::move(b), options.channel, options.bulk);
  REMORA_TRY_DO(pair->a->endpoint->connect(pair->b->endpoint->address()));
  REMORA_TRY_DO(pair->b->endpoint->connect(pair->a->endpoint->address()));
  return pair;
}

}  // namespace remora::transport::test
