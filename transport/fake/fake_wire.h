// SPDX-License-Identifier: Apache-2.0
// A Wire between two endpoints of one process, for tests: it can deliver messages out of order,
// hold them back, hand over bytes that no peer sent, and break. Nothing here knows what a message
// means.
//
// Threads: as Wire says, for each end; the two ends may be driven by different threads.
#pragma once

#include <memory>
#include <utility>

#include "transport/wire.h"

namespace remora::transport {

struct FakeOptions {
  std::uint64_t reorder_seed = 0;  // 0: in order
  std::size_t per_progress = 64;   // messages delivered by one progress()
};

class FakeWire;
/// The two ends, connected.
std::pair<std::unique_ptr<FakeWire>, std::unique_ptr<FakeWire>> fake_pair(FakeOptions options = {});

class FakeWire final : public Wire {
 public:
  struct Side;
  struct Link;
  FakeWire(std::shared_ptr<Link> link, int side);
  ~FakeWire() override;

  /// As if the peer had sent it: from any thread.
  void inject(Bytes message);
  void inject_chunk(const BulkHeader& header);
  /// Both ends fail at their next progress().
  void cut();
  /// While held, nothing arrives at this end.
  void hold(bool held);

  void set_handler(WireHandler* handler) override { handler_ = handler; }
  Bytes address() const override { return {}; }
  Result<> connect(Bytes) override { return {}; }
  void send(Bytes message, void* cookie) override;
  void announce(const BulkHeader& header, const std::byte* data, void* cookie) override;
  void fetch(AnnouncementId announcement, MutableBytes destination, void* cookie) override;
  void drop(AnnouncementId announcement) override;
  bool progress() override;
  int event_descriptor() const override;
  bool arm() override;
  void close() override;
  std::string description() const override { return "fake"; }

 private:
  Side& mine() const;
  Side& theirs() const;

  const std::shared_ptr<Link> link_;
  const int side_;
  WireHandler* handler_ = nullptr;
  bool closed_ = false;
};

}  // namespace remora::transport
