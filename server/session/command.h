// SPDX-License-Identifier: Apache-2.0
// One record of the command stream, copied out of the transport's reach: it lives as long as its
// work does. A value with one owner.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>

#include "base/bytes.h"
#include "protocol/wire/record.h"

namespace remora::server {

struct Command {
  std::uint64_t sequence = 0;
  protocol::RecordHeader header;
  std::unique_ptr<std::byte[]> bytes;
  std::size_t size = 0;

  static Command copy_of(std::uint64_t sequence, const protocol::RecordHeader& header, Bytes body) {
    Command command{sequence, header, std::make_unique_for_overwrite<std::byte[]>(body.size()),
                    body.size()};
    if (!body.empty()) std::memcpy(command.bytes.get(), body.data(), body.size());
    return command;
  }

  Bytes body() const { return {bytes.get(), size}; }
};

}  // namespace remora::server
