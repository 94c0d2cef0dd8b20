// SPDX-License-Identifier: Apache-2.0
// Writing a remora_reply whose outputs are encoded straight into it, so that the bytes of a
// device-to-host copy are not gathered somewhere else first. The layout is that of remora_reply in
// session.api.h (tests/wire compares the two); the client reads it as any other record and then
// decodes `outputs` with the <call>_reply codec of the call that it made.
#pragma once

#include "protocol/call_id.h"
#include "protocol/wire/field.h"
#include "protocol/wire/record.h"

namespace remora::protocol {

inline constexpr std::size_t kReplyOverhead = sizeof(RecordHeader) + 3 * kWordBytes;

template <typename Outputs>
std::size_t reply_size(const Outputs& outputs) {
  return kReplyOverhead + outputs.encoded_size();
}

/// Fills exactly reply_size(outputs) bytes; false as for write_record.
template <typename Outputs>
[[nodiscard]] bool write_reply(MutableBytes into, std::uint64_t sequence, std::int32_t result,
                               const Outputs& outputs) {
  if (into.size() < kReplyOverhead || into.size() > UINT32_MAX) return false;
  RecordHeader header;
  header.size = static_cast<std::uint32_t>(into.size());
  header.call = CallId::remora_reply;
  store_unaligned(into.data(), header);
  Writer writer(into.subspan(sizeof header));
  write_field(writer, sequence);
  write_field(writer, result);
  writer.word(into.size() - kReplyOverhead);
  outputs.encode(writer);
  return !writer.overflowed() && writer.written() == into.size() - sizeof header;
}

}  // namespace remora::protocol
