// SPDX-License-Identifier: Apache-2.0
// Cuts PTX text into tokens, as far as declarations need: directives (.entry), names, numbers and
// single punctuation characters; comments and blanks vanish, a quoted string is one token.
#pragma once

#include <cstddef>
#include <string_view>

namespace remora::image {

class PtxTokens {
 public:
  explicit PtxTokens(std::string_view text) : text_(text) {}

  /// The next token; empty at the end. It points into the text.
  std::string_view next();

  /// Skips behind the "}" that closes a block whose "{" was just read; false when none does.
  bool skip_block();

  /// Of the token read last, from 1.
  std::size_t line() const;

 private:
  void skip_blanks();
  void skip_comment();
  void skip_string();

  std::string_view text_;
  std::size_t at_ = 0;
};

/// True for what PTX allows as the name of a variable or function.
bool is_ptx_name(std::string_view token);

}  // namespace remora::image
