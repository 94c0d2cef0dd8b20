// SPDX-License-Identifier: Apache-2.0
// A record is one call on the wire: a 16-byte header and the call's fields. Client to server it is
// a call of the program or of the session (remora_*); server to client it is something pushed, a
// reply among them. The channel below carries records as opaque bytes, in order and exactly once;
// the sequence number of a record is the channel's and not repeated here.
//
// Sending: record_size(call), that many bytes from the channel, write_record into them.
// Receiving: copy the bytes out of reach of the peer, open_record, switch on the call, decode.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "protocol/wire/reader.h"
#include "protocol/wire/verdict.h"
#include "protocol/wire/writer.h"

namespace remora::protocol {

/// Numbers of call_ids.txt; enumerated in the generated protocol/call_id.h.
enum class CallId : std::uint16_t;

enum RecordFlags : std::uint16_t {
  kReplyWanted = 1 << 0,  // the caller waits for a remora_reply, also where the class is `posted`
};
inline constexpr std::uint16_t kKnownRecordFlags = kReplyWanted;

struct RecordHeader {
  std::uint32_t size = 0;  // of the whole record, a multiple of 8
  CallId call{};
  std::uint16_t flags = 0;
  std::uint32_t context = 0;  // object index of the context that the call runs in; 0: none
  std::uint32_t reserved = 0;

  bool reply_wanted() const { return flags & kReplyWanted; }
};
static_assert(sizeof(RecordHeader) == 16);

template <typename Call>
std::size_t record_size(const Call& call) {
  return sizeof(RecordHeader) + call.encoded_size();
}

/// Fills exactly record_size(call) bytes. Returns false, with the contents undefined, when `into`
/// has another size or the record would pass 4 GiB: a bug of the caller.
template <typename Call>
[[nodiscard]] bool write_record(MutableBytes into, const Call& call, std::uint32_t context,
                                std::uint16_t flags = 0) {
  if (into.size() < sizeof(RecordHeader) || into.size() > UINT32_MAX) return false;
  const RecordHeader header{static_cast<std::uint32_t>(into.size()), Call::kId, flags, context};
  store_unaligned(into.data(), header);
  Writer writer(into.subspan(sizeof header));
  call.encode(writer);
  return !writer.overflowed() && writer.written() == into.size() - sizeof header;
}

/// Splits a record into header and body. `call` may still be a number without a record.
[[nodiscard]] inline Verdict open_record(Bytes record, RecordHeader& header, Bytes& body) {
  if (record.size() < sizeof header) return Verdict::violation;
  header = load_unaligned<RecordHeader>(record.data());
  if (header.size != record.size() || header.size % kWordBytes != 0 || header.reserved != 0 ||
      (header.flags & ~kKnownRecordFlags) != 0) {
    return Verdict::violation;
  }
  body = record.subspan(sizeof header);
  return Verdict::ok;
}

}  // namespace remora::protocol
