// SPDX-License-Identifier: Apache-2.0
#include "protocol/wire/control.h"

#include <type_traits>

#include "protocol/wire/field.h"

namespace remora::protocol {
namespace {

// A message is a list of fields, visited by a Sizer, an Encoder or a Decoder. Limits stand beside
// the field that they bound; on the sending side they do nothing.
struct Sizer {
  std::size_t size = 0;
  void word(std::uint64_t) { size += kWordBytes; }
  void bytes(Bytes bytes) { size += field_size(bytes); }
};

struct Encoder {
  Writer writer;
  void word(std::uint64_t value) { writer.word(value); }
  void bytes(Bytes bytes) { writer.counted(bytes); }
};

template <typename Sink, typename T>
requires std::is_arithmetic_v<T>
void put(Sink& sink, const T& value) {
  static_assert(std::is_integral_v<T>);
  if constexpr (std::is_signed_v<T>) {
    sink.word(static_cast<std::uint64_t>(static_cast<std::int64_t>(value)));
  } else {
    sink.word(value);
  }
}
template <typename Sink>
void put(Sink& sink, const RefusalReason& reason) {
  sink.word(static_cast<std::uint32_t>(reason));
}
template <typename Sink>
void put(Sink& sink, const std::string& text, std::size_t = 0) {
  sink.bytes(bytes_of(text.data(), text.size()));
}
template <typename Sink>
void put(Sink& sink, const std::vector<std::byte>& bytes, std::size_t = 0) {
  sink.bytes(bytes);
}
template <typename Sink>
void put(Sink& sink, const std::array<std::byte, 16>& bytes) {
  for (std::size_t i = 0; i < bytes.size(); i += kWordBytes) {
    sink.word(load_unaligned<std::uint64_t>(bytes.data() + i));
  }
}
template <typename Visitor, typename T>
void visit_fields(Visitor&& visit, T& message);

template <typename Sink, typename T>
void put(Sink& sink, const std::vector<T>& list, std::size_t = 0) {
  sink.word(list.size());
  for (const T& element : list) {
    if constexpr (std::is_arithmetic_v<T>) {
      put(sink, element);
    } else {
      visit_fields([&](const auto&... field) { put(sink, field...); }, element);
    }
  }
}

template <typename T>
requires std::is_arithmetic_v<T>
void take(Reader& reader, T& value) { read_field(reader, value); }
void take(Reader& reader, RefusalReason& reason) {
  std::uint32_t number = 0;
  read_field(reader, number);
  reader.require(number >= static_cast<std::uint32_t>(RefusalReason::version) &&
                 number <= static_cast<std::uint32_t>(RefusalReason::windows));
  if (!reader.faulted()) reason = static_cast<RefusalReason>(number);
}
void take(Reader& reader, std::string& text, std::size_t limit) {
  const Bytes bytes = reader.counted();
  reader.require(bytes.size() <= limit);
  if (!reader.faulted()) text.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}
void take(Reader& reader, std::vector<std::byte>& out, std::size_t limit) {
  const Bytes bytes = reader.counted();
  reader.require(bytes.size() <= limit);
  if (!reader.faulted()) out.assign(bytes.begin(), bytes.end());
}
void take(Reader& reader, std::array<std::byte, 16>& out) {
  const Bytes bytes = reader.fixed(out.size());
  if (!bytes.empty()) std::memcpy(out.data(), bytes.data(), out.size());
}
template <typename T>
void take(Reader& reader, std::vector<T>& list, std::size_t limit) {
  const std::uint64_t count = reader.word();
  // Each element takes at least a word, so a count beyond the bytes that are there is a lie.
  reader.require(count <= limit && count <= reader.remaining() / kWordBytes);
  if (reader.faulted()) return;
  list.resize(count);
  for (T& element : list) {
    if constexpr (std::is_arithmetic_v<T>) {
      take(reader, element);
    } else {
      visit_fields([&](auto&... field) { take(reader, field...); }, element);
    }
  }
}

// The messages.
template <typename Visitor, typename T>
void visit_fields(Visitor&& visit, T& m) {
  using Message = std::remove_const_t<T>;
  [[maybe_unused]] const std::size_t text_limit = kMaxControlText;
  if constexpr (std::is_same_v<Message, ClientHello>) {
    visit(m.build_version, text_limit);
    visit(m.credential, text_limit);
    visit(m.client_pid);
    visit(m.program_name, text_limit);
    visit(m.worker_address, kMaxWorkerAddress);
  } else if constexpr (std::is_same_v<Message, Refusal>) {
    visit(m.reason);
    visit(m.text, text_limit);
  } else if constexpr (std::is_same_v<Message, AddressWindow>) {
    visit(m.base);
    visit(m.size);
    visit(m.granularity);
    visit(m.committed_bytes);
  } else if constexpr (std::is_same_v<Message, DeviceAttribute>) {
    visit(m.attribute);
    visit(m.value);
  } else if constexpr (std::is_same_v<Message, DeviceOffer>) {
    visit(m.name, text_limit);
    visit(m.uuid);
    visit(m.total_memory);
    visit(m.attributes, kMaxDeviceAttributes);
    visit(m.least_stream_priority);
    visit(m.greatest_stream_priority);
    visit_fields(visit, m.window);
  } else if constexpr (std::is_same_v<Message, SessionOffer>) {
    visit(m.session_id);
    visit(m.epoch);
    visit(m.driver_version);
    visit(m.worker_address, kMaxWorkerAddress);
    visit(m.inline_limit);
    visit(m.unacknowledged_limit);
    visit(m.features);
    visit(m.software_device);
    visit(m.devices, kMaxDevices);
  } else if constexpr (std::is_same_v<Message, WindowAnswer> ||
                       std::is_same_v<Message, WindowOffer>) {
    visit(m.bases, kMaxDevices);
  } else {
    static_assert(std::is_same_v<Message, Ready>);
  }
}

}  // namespace

template <typename Message>
std::vector<std::byte> encode_control(const Message& message) {
  Sizer sizer;
  visit_fields([&](const auto&... field) { put(sizer, field...); }, message);
  std::vector<std::byte> body(sizer.size);
  Encoder encoder{Writer(body)};
  visit_fields([&](const auto&... field) { put(encoder, field...); }, message);
  return body;
}

template <typename Message>
Result<Message> decode_control(Bytes body) {
  Reader reader(body);
  Message message;
  visit_fields([&](auto&... field) { take(reader, field...); }, message);
  if (reader.finish() == Verdict::violation) {
    return Error{ErrorKind::invalid_input, 0,
                 "The control message of kind " + std::to_string(static_cast<int>(Message::kKind)) +
                     " is malformed."};
  }
  return message;
}

#define REMORA_CONTROL_MESSAGE(Message)                           \
  template std::vector<std::byte> encode_control(const Message&); \
  template Result<Message> decode_control<Message>(Bytes);
REMORA_CONTROL_MESSAGE(ClientHello)
REMORA_CONTROL_MESSAGE(Refusal)
REMORA_CONTROL_MESSAGE(SessionOffer)
REMORA_CONTROL_MESSAGE(WindowAnswer)
REMORA_CONTROL_MESSAGE(WindowOffer)
REMORA_CONTROL_MESSAGE(Ready)

}  // namespace remora::protocol
