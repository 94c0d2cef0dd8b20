// SPDX-License-Identifier: Apache-2.0
// What a decoder says about bytes from the peer. There is no third answer: bytes that are not
// exactly a record are a violation, and a violation ends the session, without retry or guess.
#pragma once

namespace remora::protocol {

enum class [[nodiscard]] Verdict{ok, violation};

}  // namespace remora::protocol
