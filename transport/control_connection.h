// SPDX-License-Identifier: Apache-2.0
// The control connection: a plain stream socket that carries a few framed messages at the start and
// then stays open, silent; its end is how a peer's death is noticed. Frames: magic, protocol
// version, type, length, payload. Nothing here trusts a byte: a bad magic, another version or a
// length over the limit is an Error, and every read and write has a deadline.
//
// Errors: invalid_input (not a frame), refused (another protocol version; `code` is theirs),
// unavailable (end of file), timed_out, system.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace remora::transport {

inline constexpr std::uint32_t kFrameMagic = 0x41524D52;  // "RMRA"
inline constexpr std::size_t kFrameHeaderBytes = 12;
inline constexpr std::size_t kFrameLimit = 1 << 20;

struct Frame {
  std::uint16_t type = 0;
  std::vector<std::byte> payload;
};

/// "host:port", "[v6]:port".
struct HostPort {
  std::string host;
  std::uint16_t port = 0;
};
Result<HostPort> parse_host_port(std::string_view text);

Result<UniqueFd> connect_tcp(const HostPort& server, Deadline deadline);
/// Port 0 chooses one. The socket is non-blocking.
Result<UniqueFd> listen_tcp(const HostPort& address);
Result<std::uint16_t> local_port(int socket);
/// True for 127.0.0.0/8 and ::1 (the name is resolved).
Result<bool> is_loopback(const HostPort& address);

Result<> send_frame(int socket, std::uint16_t protocol_version, std::uint16_t type, Bytes payload,
                    Deadline deadline);
/// Also takes frames of another protocol version when `their_version` is given (to read a refusal).
Result<Frame> receive_frame(int socket, std::uint16_t protocol_version, Deadline deadline,
                            std::size_t limit = kFrameLimit,
                            std::uint16_t* their_version = nullptr);

/// Assembles one frame from a non-blocking socket, for a loop that serves many at once.
class FrameReader {
 public:
  explicit FrameReader(std::uint16_t protocol_version, std::size_t limit = kFrameLimit)
      : protocol_version_(protocol_version), limit_(limit) {}
  /// Reads what is there. True when the frame is complete; an Error ends the connection.
  Result<bool> read_some(int socket);
  Frame take();

 private:
  std::uint16_t protocol_version_;
  std::size_t limit_;
  std::vector<std::byte> bytes_;
  std::size_t wanted_ = kFrameHeaderBytes;
};

/// Over a Unix socket: bytes with a descriptor.
Result<> send_descriptor(int unix_socket, int descriptor, Bytes bytes, Deadline deadline);
struct ReceivedDescriptor {
  UniqueFd descriptor;
  std::vector<std::byte> bytes;
};
Result<ReceivedDescriptor> receive_descriptor(int unix_socket, Deadline deadline,
                                              std::size_t limit = kFrameLimit);

}  // namespace remora::transport
