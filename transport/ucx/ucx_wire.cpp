// SPDX-License-Identifier: Apache-2.0
#include "transport/ucx/ucx_wire.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/environment.h"

namespace remora::transport {
namespace {

enum : unsigned { kMessageId = 1, kChunkId = 2 };

constexpr std::uint64_t kCloseMs = 200;

struct Setting {
  const char* name;  // as UCX knows it
  std::string value;
};

/// REMORA_UCX_<name> is read by UCX itself and wins; here is what stands in for it.
std::vector<Setting> default_settings(bool same_host) {
  std::vector<Setting> settings;
  const auto unless_given = [&](const char* name, const char* plain, const char* otherwise) {
    if (environment::text(fmt::format("REMORA_UCX_{}", name).c_str())) return;
    if (auto value = environment::text(plain)) {
      settings.push_back({name, *value});
    } else if (otherwise != nullptr) {
      settings.push_back({name, otherwise});
    }
  };
  unless_given("TLS", "UCX_TLS", nullptr);
  unless_given("NET_DEVICES", "UCX_NET_DEVICES", same_host ? "lo" : nullptr);
  return settings;
}

}  // namespace

/// One send, announcement or fetch. The header stays valid until the end, as UCX before 1.14 needs.
struct UcxWire::Operation {
  UcxWire* wire;
  void* cookie;
  bool is_fetch = false;
  void* request = nullptr;
  BulkHeader header;
};

UcxWire::UcxWire(const UcxLibrary& ucp, Options options)
    : ucp_(ucp), same_host_(options.same_host) {}

Result<std::unique_ptr<Wire>> UcxWire::open(Options options) {
  REMORA_TRY(const UcxLibrary* ucp, UcxLibrary::open());
  auto wire = std::unique_ptr<UcxWire>(new UcxWire(*ucp, options));
  REMORA_TRY_DO(wire->start());
  return std::unique_ptr<Wire>(std::move(wire));
}

Result<> UcxWire::start() {
  ucp_config_t* config = nullptr;
  ucs_status_t status = ucp_.config_read("REMORA", nullptr, &config);
  if (status != UCS_OK) return ucp_.error("to read its configuration (REMORA_UCX_*)", status);
  for (const Setting& setting : default_settings(same_host_)) {
    status = ucp_.config_modify(config, setting.name, setting.value.c_str());
    if (status != UCS_OK) {
      ucp_.config_release(config);
      return ucp_.error(fmt::format("to set {} to '{}'", setting.name, setting.value).c_str(),
                        status);
    }
  }
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_NAME;
  params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  params.name = "remora";
  status = ucp_.init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config, &context_);
  ucp_.config_release(config);
  if (status != UCS_OK) return ucp_.error("to start", status);

  ucp_worker_params_t worker{};
  worker.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  worker.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  status = ucp_.worker_create(context_, &worker, &worker_);
  if (status != UCS_OK) return ucp_.error("to make a worker", status);
  status = ucp_.worker_get_efd(worker_, &event_descriptor_);
  if (status != UCS_OK) return ucp_.error("to give an event descriptor", status);
  status = ucp_.worker_get_address(worker_, &address_, &address_bytes_);
  if (status != UCS_OK) return ucp_.error("to give an address", status);

  // Before any address is given away: a message that finds no handler would be dropped.
  const std::pair<unsigned, ucp_am_recv_callback_t> handlers[] = {
      {kMessageId, &UcxWire::on_message}, {kChunkId, &UcxWire::on_chunk}};
  for (const auto& [id, callback] : handlers) {
    ucp_am_handler_param_t handler{};
    handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                         UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
    handler.id = id;
    handler.flags = UCP_AM_FLAG_WHOLE_MSG;
    handler.cb = callback;
    handler.arg = this;
    status = ucp_.worker_set_am_recv_handler(worker_, &handler);
    if (status != UCS_OK) return ucp_.error("to register a handler", status);
  }
  return {};
}

UcxWire::~UcxWire() {
  close();
  if (address_ != nullptr) ucp_.worker_release_address(worker_, address_);
  if (worker_ != nullptr) ucp_.worker_destroy(worker_);
  if (context_ != nullptr) ucp_.cleanup(context_);
}

Result<> UcxWire::connect(Bytes peer_address) {
  if (peer_address.empty())
    return Error{ErrorKind::invalid_input, 0, "The peer's address is empty."};
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(peer_address.data());
  params.err_mode = same_host_ ? UCP_ERR_HANDLING_MODE_NONE : UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler.cb = &UcxWire::on_error;
  params.err_handler.arg = this;
  const ucs_status_t status = ucp_.ep_create(worker_, &params, &endpoint_);
  if (status != UCS_OK) return ucp_.error("to reach the peer", status);
  return {};
}

void UcxWire::close() {
  if (closed_) return;
  closed_ = true;
  if (worker_ == nullptr) return;
  // The chunks that nobody took; their senders learn of our end from the control connection.
  for (const auto& [id, data] : announced_) ucp_.am_data_release(worker_, data);
  announced_.clear();
  ucs_status_ptr_t closing = nullptr;
  if (endpoint_ != nullptr) {
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = same_host_ ? 0 : UCP_EP_CLOSE_FLAG_FORCE;  // needs error handling
    closing = ucp_.ep_close_nbx(endpoint_, &param);
    endpoint_ = nullptr;
  }
  const Deadline deadline = Deadline::in_ms(kCloseMs);
  const auto closing_done = [&] {
    return !UCS_PTR_IS_PTR(closing) || ucp_.request_check_status(closing) != UCS_INPROGRESS;
  };
  while ((!closing_done() || !operations_.empty()) && !deadline.passed()) {
    ucp_.worker_progress(worker_);
  }
  if (UCS_PTR_IS_PTR(closing)) ucp_.request_free(closing);
  // A path that does not let go in time (none is known) is told nothing more; its operations are
  // never freed, since it may still look at them.
  for (Operation* operation : std::exchange(operations_, {})) {
    handler_finished(*operation, false);
    operation->wire = nullptr;
  }
  handler_ = nullptr;
}

void UcxWire::send(Bytes message, void* cookie) {
  auto* operation = new Operation{this, cookie};
  ucp_request_param_t param{};
  param.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
  param.cb.send = &UcxWire::on_sent;
  param.user_data = operation;
  param.flags = UCP_AM_SEND_FLAG_EAGER;
  started(operation, ucp_.am_send_nbx(endpoint_, kMessageId, nullptr, 0, message.data(),
                                      message.size(), &param));
}

void UcxWire::announce(const BulkHeader& header, const std::byte* data, void* cookie) {
  auto* operation = new Operation{this, cookie, false, nullptr, header};
  ucp_request_param_t param{};
  param.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
  param.cb.send = &UcxWire::on_sent;
  param.user_data = operation;
  param.flags = UCP_AM_SEND_FLAG_RNDV;
  started(operation, ucp_.am_send_nbx(endpoint_, kChunkId, &operation->header, sizeof(BulkHeader),
                                      data, header.size_bytes, &param));
}

void UcxWire::fetch(AnnouncementId announcement, MutableBytes destination, void* cookie) {
  const auto found = announced_.find(announcement);
  if (found == announced_.end()) {
    handler_->fetch_finished(cookie, false);
    return;
  }
  void* data = found->second;
  announced_.erase(found);
  auto* operation = new Operation{this, cookie, true};
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.recv_am = &UcxWire::on_fetched;
  param.user_data = operation;
  started(operation,
          ucp_.am_recv_data_nbx(worker_, data, destination.data(), destination.size(), &param));
}

void UcxWire::drop(AnnouncementId announcement) {
  const auto found = announced_.find(announcement);
  if (found == announced_.end()) return;
  ucp_.am_data_release(worker_, found->second);
  announced_.erase(found);
}

bool UcxWire::progress() {
  bool something = false;
  while (ucp_.worker_progress(worker_) != 0) something = true;
  return something;
}

bool UcxWire::arm() { return ucp_.worker_arm(worker_) == UCS_OK; }

/// Takes what UCX returned for a new operation: done, failed, or a request that will call back.
void UcxWire::started(Operation* operation, ucs_status_ptr_t request) {
  if (UCS_PTR_IS_PTR(request)) {
    operation->request = request;
    operations_.insert(operation);
    return;
  }
  finish(operation, UCS_PTR_STATUS(request));
}

void UcxWire::finish(Operation* operation, ucs_status_t status) {
  const bool ok = status == UCS_OK;
  if (operation->request != nullptr) {
    operations_.erase(operation);
    ucp_.request_free(operation->request);
  }
  if (!ok && !closed_) handler_->wire_failed(ucp_.error("to move bytes", status));
  handler_finished(*operation, ok);
  delete operation;
}

void UcxWire::handler_finished(const Operation& operation, bool ok) {
  if (operation.is_fetch) {
    handler_->fetch_finished(operation.cookie, ok);
  } else {
    handler_->send_finished(operation.cookie, ok);
  }
}

void UcxWire::on_sent(void* /*request*/, ucs_status_t status, void* operation) {
  auto* self = static_cast<Operation*>(operation);
  if (self->wire != nullptr) self->wire->finish(self, status);
}

void UcxWire::on_fetched(void* /*request*/, ucs_status_t status, std::size_t /*bytes*/,
                         void* operation) {
  auto* self = static_cast<Operation*>(operation);
  if (self->wire != nullptr) self->wire->finish(self, status);
}

void UcxWire::on_error(void* self, ucp_ep_h /*endpoint*/, ucs_status_t status) {
  auto* wire = static_cast<UcxWire*>(self);
  if (!wire->closed_) {
    wire->handler_->wire_failed(wire->ucp_.error("to keep the connection", status));
  }
}

ucs_status_t UcxWire::on_message(void* self, const void* /*header*/, std::size_t header_bytes,
                                 void* data, std::size_t bytes, const ucp_am_recv_param_t* param) {
  auto* wire = static_cast<UcxWire*>(self);
  if (wire->closed_) return UCS_OK;
  if (header_bytes != 0 || (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) {
    wire->handler_->wire_failed(
        {ErrorKind::invalid_input, 0, "The peer sends a message in a form that is not ours."});
    return UCS_OK;
  }
  wire->handler_->message_arrived(bytes_of(data, bytes));
  return UCS_OK;
}

ucs_status_t UcxWire::on_chunk(void* self, const void* header, std::size_t header_bytes, void* data,
                               std::size_t bytes, const ucp_am_recv_param_t* param) {
  auto* wire = static_cast<UcxWire*>(self);
  if (wire->closed_) return UCS_OK;
  BulkHeader chunk;
  const bool well_formed =
      header_bytes == sizeof chunk && (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
  if (well_formed) chunk = load_unaligned<BulkHeader>(header);
  if (!well_formed || chunk.size_bytes != bytes || bytes == 0) {
    wire->handler_->wire_failed(
        {ErrorKind::invalid_input, 0, "The peer announces a chunk in a form that is not ours."});
    return UCS_OK;
  }
  const AnnouncementId id = wire->next_announcement_++;
  wire->announced_.emplace(id, data);
  wire->handler_->chunk_announced(chunk, id);
  return UCS_INPROGRESS;
}

std::string UcxWire::description() const {
  if (endpoint_ == nullptr) return "not connected";
  char* text = nullptr;
  std::size_t size = 0;
  FILE* stream = open_memstream(&text, &size);
  if (stream == nullptr) return "unknown";
  ucp_.ep_print_info(endpoint_, stream);
  std::fclose(stream);
  // Lines such as "#   lane[0]:  4:posix/memory.0 md[3]   -> md[3]/…": the word before the slash.
  std::vector<std::string> paths;
  std::string_view rest(text, size);
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    const std::size_t lane = line.find("lane[");
    const std::size_t slash = line.find('/', lane == line.npos ? 0 : lane);
    if (lane == line.npos || slash == line.npos) continue;
    const std::size_t colon = line.rfind(':', slash);
    if (colon == line.npos || colon < lane) continue;
    std::string path(line.substr(colon + 1, slash - colon - 1));
    if (std::find(paths.begin(), paths.end(), path) == paths.end())
      paths.push_back(std::move(path));
  }
  std::free(text);
  return paths.empty() ? "unknown" : fmt::format("{}", fmt::join(paths, ", "));
}

}  // namespace remora::transport
