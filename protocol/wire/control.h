// SPDX-License-Identifier: Apache-2.0
// The messages of the control connection, in the order in which they travel:
//
//   client  → ClientHello    who I am, how UCX reaches me
//   server  → Refusal        and closes, or
//   session → SessionOffer   devices and their address windows, how UCX reaches me
//   client  → WindowAnswer   the bases that it holds   ┐ until both hold the same,
//   session → WindowOffer    the bases that it holds   ┘ at most kMaxWindowRounds times
//   session → Ready          commands may flow
//
// The frame around a message (its kind, its size, the protocol version) is the transport's;
// here is what is inside, as fields of docs/wire-format.md. Messages own their contents: a control
// message is rare. Decoders bound every count and every string.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace remora::protocol {

/// The kind of a control frame. 0 is not a kind.
enum class ControlKind : std::uint16_t {
  client_hello = 1,
  refusal = 2,
  session_offer = 3,
  window_answer = 4,
  window_offer = 5,
  ready = 6,
};

inline constexpr int kMaxWindowRounds = 8;
inline constexpr std::size_t kMaxDevices = 64;
inline constexpr std::size_t kMaxDeviceAttributes = 512;
inline constexpr std::size_t kMaxControlText = 4096;
inline constexpr std::size_t kMaxWorkerAddress = 16384;

struct ClientHello {
  static constexpr ControlKind kKind = ControlKind::client_hello;
  std::string build_version;
  std::string credential;  // empty: none
  std::uint32_t client_pid = 0;
  std::string program_name;
  std::vector<std::byte> worker_address;
};

enum class RefusalReason : std::uint32_t {
  version = 1,     // the frame's protocol version is not the server's
  credential = 2,  // missing or not accepted
  malformed = 3,   // the message made no sense
  busy = 4,        // no session process to be had
  driver = 5,      // the server's driver does not work
  windows = 6,     // no address window that both ends can hold
};

struct Refusal {
  static constexpr ControlKind kKind = ControlKind::refusal;
  RefusalReason reason{};
  std::string text;  // a sentence for the user
};

/// A range of device addresses that this session owns; its first `committed_bytes` have memory
/// behind them for the session's life.
struct AddressWindow {
  std::uint64_t base = 0;
  std::uint64_t size = 0;
  std::uint64_t granularity = 0;
  std::uint64_t committed_bytes = 0;
};

struct DeviceAttribute {
  std::int32_t attribute = 0;  // CUdevice_attribute
  std::int32_t value = 0;
};

struct DeviceOffer {
  std::string name;
  std::array<std::byte, 16> uuid{};
  std::uint64_t total_memory = 0;
  std::vector<DeviceAttribute> attributes;  // those that the driver answers
  std::int32_t least_stream_priority = 0;
  std::int32_t greatest_stream_priority = 0;
  AddressWindow window;
};

struct SessionOffer {
  static constexpr ControlKind kKind = ControlKind::session_offer;
  std::uint64_t session_id = 0;
  std::uint32_t epoch = 0;
  std::int32_t driver_version = 0;
  std::vector<std::byte> worker_address;
  std::uint64_t inline_limit = 0;          // payload up to this size rides in the command stream
  std::uint64_t unacknowledged_limit = 0;  // bytes
  std::uint64_t features = 0;
  bool software_device = false;
  std::vector<DeviceOffer> devices;
};

struct WindowAnswer {
  static constexpr ControlKind kKind = ControlKind::window_answer;
  std::vector<std::uint64_t>
      bases;  // one per device: the offered base, or one that it holds instead
};

struct WindowOffer {
  static constexpr ControlKind kKind = ControlKind::window_offer;
  std::vector<std::uint64_t> bases;  // one per device
};

struct Ready {
  static constexpr ControlKind kKind = ControlKind::ready;
};

/// The body of a frame of kind Message::kKind.
template <typename Message>
std::vector<std::byte> encode_control(const Message& message);

/// Fails with invalid_input, naming the message, on anything that is not exactly one.
template <typename Message>
Result<Message> decode_control(Bytes body);

#define REMORA_CONTROL_MESSAGE(Message)                                  \
  extern template std::vector<std::byte> encode_control(const Message&); \
  extern template Result<Message> decode_control<Message>(Bytes);
REMORA_CONTROL_MESSAGE(ClientHello)
REMORA_CONTROL_MESSAGE(Refusal)
REMORA_CONTROL_MESSAGE(SessionOffer)
REMORA_CONTROL_MESSAGE(WindowAnswer)
REMORA_CONTROL_MESSAGE(WindowOffer)
REMORA_CONTROL_MESSAGE(Ready)
#undef REMORA_CONTROL_MESSAGE

}  // namespace remora::protocol
