// SPDX-License-Identifier: Apache-2.0
// The Wire over UCX: one context, one worker, one endpoint. Messages are active messages that UCX
// delivers whole (eager); a bulk chunk is an active message that UCX announces and the receiver
// fetches (rendezvous), over whatever path UCX finds best: shared memory, TCP, RDMA.
//
// Configuration: variables REMORA_UCX_*; UCX_TLS and UCX_NET_DEVICES are taken as defaults for
// theirs. Threads and ownership: as Wire says.
#pragma once

#include <ucp/api/ucp.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "transport/ucx/ucx_library.h"
#include "transport/wire.h"

namespace remora::transport {

class UcxWire final : public Wire {
 public:
  struct Options {
    /// Both ends say the same. True: of network devices only the loopback one, and UCX does not
    /// watch the peer (the control connection does), since its shared memory paths cannot.
    bool same_host = false;
  };

  /// Errors: unavailable (no UCX), system (UCX's own).
  static Result<std::unique_ptr<Wire>> open(Options options);
  ~UcxWire() override;

  void set_handler(WireHandler* handler) override { handler_ = handler; }
  Bytes address() const override { return bytes_of(address_, address_bytes_); }
  Result<> connect(Bytes peer_address) override;

  void send(Bytes message, void* cookie) override;
  void announce(const BulkHeader& header, const std::byte* data, void* cookie) override;
  void fetch(AnnouncementId announcement, MutableBytes destination, void* cookie) override;
  void drop(AnnouncementId announcement) override;

  bool progress() override;
  int event_descriptor() const override { return event_descriptor_; }
  bool arm() override;
  void close() override;

  std::string description() const override;

 private:
  struct Operation;
  UcxWire(const UcxLibrary& ucp, Options options);

  Result<> start();
  void started(Operation* operation, ucs_status_ptr_t request);
  void finish(Operation* operation, ucs_status_t status);
  void handler_finished(const Operation& operation, bool ok);

  static ucs_status_t on_message(void* self, const void* header, std::size_t header_bytes,
                                 void* data, std::size_t bytes, const ucp_am_recv_param_t* param);
  static ucs_status_t on_chunk(void* self, const void* header, std::size_t header_bytes, void* data,
                               std::size_t bytes, const ucp_am_recv_param_t* param);
  static void on_sent(void* request, ucs_status_t status, void* operation);
  static void on_fetched(void* request, ucs_status_t status, std::size_t bytes, void* operation);
  static void on_error(void* self, ucp_ep_h endpoint, ucs_status_t status);

  const UcxLibrary& ucp_;
  const bool same_host_;
  WireHandler* handler_ = nullptr;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  ucp_ep_h endpoint_ = nullptr;
  ucp_address_t* address_ = nullptr;
  std::size_t address_bytes_ = 0;
  int event_descriptor_ = -1;
  bool closed_ = false;

  std::unordered_map<AnnouncementId, void*> announced_;  // UCX's descriptors of chunks not fetched
  AnnouncementId next_announcement_ = 1;
  std::unordered_set<Operation*> operations_;  // not finished
};

}  // namespace remora::transport
