// SPDX-License-Identifier: Apache-2.0
#include "transport/control_connection.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <memory>
#include <utility>

namespace remora::transport {
namespace {

struct FrameHeader {
  std::uint32_t magic = kFrameMagic;
  std::uint16_t version = 0;
  std::uint16_t type = 0;
  std::uint32_t payload_bytes = 0;
};
static_assert(sizeof(FrameHeader) == kFrameHeaderBytes);

Error too_late(std::string_view doing) {
  return {ErrorKind::timed_out, 0, fmt::format("No answer in time while {}.", doing)};
}

Error closed_by_peer() {
  return {ErrorKind::unavailable, 0, "The peer has closed the connection."};
}

Result<> wait_for(int socket, short events, Deadline deadline, std::string_view doing) {
  while (true) {
    pollfd watched{socket, events, 0};
    const int ready = poll(&watched, 1, deadline.poll_timeout_ms());
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return system_error(doing);
    if (ready == 0 && deadline.passed()) return too_late(doing);
  }
}

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK; }

/// Whether the peer's end shows up as an error or as an end of file depends on who was faster.
Error receive_error(std::string_view doing) {
  return errno == ECONNRESET || errno == EPIPE ? closed_by_peer() : system_error(doing);
}

Result<> send_all(int socket, Bytes bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
    } else if (would_block()) {
      REMORA_TRY_DO(wait_for(socket, POLLOUT, deadline, "sending on the control connection"));
    } else if (errno != EINTR) {
      return receive_error("sending on the control connection");
    }
  }
  return {};
}

Result<> receive_all(int socket, MutableBytes bytes, Deadline deadline) {
  while (!bytes.empty()) {
    REMORA_TRY_DO(wait_for(socket, POLLIN, deadline, "waiting for the peer"));
    const ssize_t got = recv(socket, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(got));
    } else if (got == 0) {
      return closed_by_peer();
    } else if (!would_block() && errno != EINTR) {
      return receive_error("receiving on the control connection");
    }
  }
  return {};
}

Result<> check_header(const FrameHeader& header, std::uint16_t version, std::size_t limit,
                      std::uint16_t* their_version) {
  if (header.magic != kFrameMagic) {
    return Error{ErrorKind::invalid_input, 0, "The peer does not speak Remora's protocol."};
  }
  if (header.payload_bytes > limit) {
    return Error{ErrorKind::invalid_input, 0,
                 fmt::format("A control message of {} bytes passes the limit of {}.",
                             header.payload_bytes, limit)};
  }
  if (their_version != nullptr) *their_version = header.version;
  if (header.version != version && their_version == nullptr) {
    return Error{ErrorKind::refused, header.version,
                 fmt::format("The peer speaks version {} of the protocol, this end version {}.",
                             header.version, version)};
  }
  return {};
}

struct AddressList {
  addrinfo* first = nullptr;
  AddressList() = default;
  AddressList(AddressList&& other) noexcept : first(std::exchange(other.first, nullptr)) {}
  ~AddressList() {
    if (first != nullptr) freeaddrinfo(first);
  }
};

Result<AddressList> resolve(const HostPort& address, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  AddressList list;
  const int status = getaddrinfo(address.host.c_str(), fmt::format("{}", address.port).c_str(),
                                 &hints, &list.first);
  if (status != 0) {
    return Error{
        ErrorKind::not_found, 0,
        fmt::format("The host '{}' is not known: {}.", address.host, gai_strerror(status))};
  }
  return list;
}

Result<UniqueFd> connect_one(const addrinfo& to, Deadline deadline) {
  UniqueFd socket(::socket(to.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return system_error("making a socket");
  if (::connect(socket.get(), to.ai_addr, to.ai_addrlen) != 0) {
    if (errno != EINPROGRESS) return system_error("connecting");
    REMORA_TRY_DO(wait_for(socket.get(), POLLOUT, deadline, "connecting"));
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return system_error("connecting", error);
  }
  const int on = 1;
  setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  // A host that vanishes without a word is noticed within about half a minute.
  setsockopt(socket.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  const int idle_s = 10, interval_s = 5, probes = 4;
  setsockopt(socket.get(), IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
  setsockopt(socket.get(), IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
  setsockopt(socket.get(), IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
  return socket;
}

}  // namespace

Result<HostPort> parse_host_port(std::string_view text) {
  const auto wrong = [&] {
    return Error{ErrorKind::invalid_input, 0,
                 fmt::format("'{}' is not an address of the form HOST:PORT.", text)};
  };
  HostPort address;
  std::string_view port;
  if (text.starts_with('[')) {
    const std::size_t end = text.find("]:");
    if (end == text.npos) return wrong();
    address.host = text.substr(1, end - 1);
    port = text.substr(end + 2);
  } else {
    const std::size_t colon = text.find(':');
    if (colon == text.npos || text.find(':', colon + 1) != text.npos) return wrong();
    address.host = text.substr(0, colon);
    port = text.substr(colon + 1);
  }
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (address.host.empty() || port.empty() || error != std::errc{} ||
      end != port.data() + port.size()) {
    return wrong();
  }
  return address;
}

Result<UniqueFd> connect_tcp(const HostPort& server, Deadline deadline) {
  REMORA_TRY(const AddressList addresses, resolve(server, 0));
  Error last{ErrorKind::not_found, 0, "no address"};
  for (const addrinfo* to = addresses.first; to != nullptr; to = to->ai_next) {
    auto socket = connect_one(*to, deadline);
    if (socket.ok()) return socket;
    last = std::move(socket).error();
    if (deadline.passed()) break;
  }
  const bool late = last.kind == ErrorKind::timed_out;
  return Error{
      late ? ErrorKind::timed_out : ErrorKind::unavailable, last.code,
      fmt::format("No server can be reached at {}:{}: {}", server.host, server.port, last.text)};
}

Result<UniqueFd> listen_tcp(const HostPort& address) {
  REMORA_TRY(const AddressList addresses, resolve(address, AI_PASSIVE));
  const addrinfo& at = *addresses.first;
  UniqueFd socket(::socket(at.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return system_error("making a socket");
  const int on = 1;
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const std::string doing = fmt::format("listening at {}:{}", address.host, address.port);
  if (bind(socket.get(), at.ai_addr, at.ai_addrlen) != 0) return system_error(doing);
  if (listen(socket.get(), 128) != 0) return system_error(doing);
  return socket;
}

Result<std::uint16_t> local_port(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return system_error("reading the socket's address");
  }
  if (address.ss_family == AF_INET6) {
    return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
  }
  return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

Result<bool> is_loopback(const HostPort& address) {
  REMORA_TRY(const AddressList addresses, resolve(address, 0));
  for (const addrinfo* at = addresses.first; at != nullptr; at = at->ai_next) {
    if (at->ai_family == AF_INET) {
      const auto& v4 = *reinterpret_cast<const sockaddr_in*>(at->ai_addr);
      if (ntohl(v4.sin_addr.s_addr) >> 24 != 127) return false;
    } else {
      const auto& v6 = *reinterpret_cast<const sockaddr_in6*>(at->ai_addr);
      if (!IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr)) return false;
    }
  }
  return true;
}

Result<> send_frame(int socket, std::uint16_t protocol_version, std::uint16_t type, Bytes payload,
                    Deadline deadline) {
  if (payload.size() > kFrameLimit) {
    return Error{ErrorKind::internal, 0, "A control message passes the frame limit."};
  }
  const FrameHeader header{kFrameMagic, protocol_version, type,
                           static_cast<std::uint32_t>(payload.size())};
  std::vector<std::byte> frame(sizeof header + payload.size());
  store_unaligned(frame.data(), header);
  std::copy(payload.begin(), payload.end(), frame.begin() + sizeof header);
  return send_all(socket, frame, deadline);
}

Result<Frame> receive_frame(int socket, std::uint16_t protocol_version, Deadline deadline,
                            std::size_t limit, std::uint16_t* their_version) {
  FrameHeader header;
  REMORA_TRY_DO(
      receive_all(socket, {reinterpret_cast<std::byte*>(&header), sizeof header}, deadline));
  REMORA_TRY_DO(check_header(header, protocol_version, limit, their_version));
  Frame frame{header.type, std::vector<std::byte>(header.payload_bytes)};
  REMORA_TRY_DO(receive_all(socket, frame.payload, deadline));
  return frame;
}

Result<bool> FrameReader::read_some(int socket) {
  while (bytes_.size() < wanted_) {
    const std::size_t have = bytes_.size();
    bytes_.resize(wanted_);
    const ssize_t got = recv(socket, bytes_.data() + have, wanted_ - have, MSG_DONTWAIT);
    bytes_.resize(have + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got == 0) return closed_by_peer();
    if (got < 0) {
      if (would_block()) return false;
      if (errno == EINTR) continue;
      return receive_error("receiving on the control connection");
    }
    if (bytes_.size() == kFrameHeaderBytes && wanted_ == kFrameHeaderBytes) {
      const auto header = load_unaligned<FrameHeader>(bytes_.data());
      REMORA_TRY_DO(check_header(header, protocol_version_, limit_, nullptr));
      wanted_ += header.payload_bytes;
    }
  }
  return true;
}

Frame FrameReader::take() {
  Frame frame;
  frame.type = load_unaligned<FrameHeader>(bytes_.data()).type;
  frame.payload.assign(bytes_.begin() + kFrameHeaderBytes, bytes_.end());
  bytes_.clear();
  wanted_ = kFrameHeaderBytes;
  return frame;
}

// --- Descriptors -------------------------------------------------------------------------------

Result<> send_descriptor(int unix_socket, int descriptor, Bytes bytes, Deadline deadline) {
  // The length travels first, with the descriptor, so that a stream socket needs no message ends.
  const auto size = static_cast<std::uint32_t>(bytes.size());
  iovec part{const_cast<std::uint32_t*>(&size), sizeof size};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  while (true) {
    const ssize_t sent = sendmsg(unix_socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent == static_cast<ssize_t>(sizeof size)) break;
    if (sent >= 0) return Error{ErrorKind::system, 0, "A descriptor was sent in part."};
    if (would_block()) {
      REMORA_TRY_DO(wait_for(unix_socket, POLLOUT, deadline, "handing over a connection"));
    } else if (errno != EINTR) {
      return receive_error("handing over a connection");
    }
  }
  return send_all(unix_socket, bytes, deadline);
}

Result<ReceivedDescriptor> receive_descriptor(int unix_socket, Deadline deadline,
                                              std::size_t limit) {
  std::uint32_t size = 0;
  iovec part{&size, sizeof size};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ReceivedDescriptor received;
  while (true) {
    REMORA_TRY_DO(wait_for(unix_socket, POLLIN, deadline, "waiting for a connection"));
    const ssize_t got = recvmsg(unix_socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (got == 0) return closed_by_peer();
    if (got < 0) {
      if (would_block() || errno == EINTR) continue;
      return receive_error("waiting for a connection");
    }
    const cmsghdr* header = CMSG_FIRSTHDR(&message);
    if (header != nullptr && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
      received.descriptor.reset(descriptor);
    }
    if (!received.descriptor || got != static_cast<ssize_t>(sizeof size) || size > limit) {
      return Error{ErrorKind::invalid_input, 0, "A descriptor was expected and not sent."};
    }
    break;
  }
  received.bytes.resize(size);
  REMORA_TRY_DO(receive_all(unix_socket, received.bytes, deadline));
  return received;
}

}  // namespace remora::transport
