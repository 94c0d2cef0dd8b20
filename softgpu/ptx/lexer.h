// SPDX-License-Identifier: Apache-2.0
// PTX text to tokens, on demand: the index of a module reads only what stands outside of bodies, so
// the lexer can also skip a braced body without making tokens of it. Tokens are views into the
// text.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace remora::softgpu {

struct Token {
  enum class Kind {
    end,
    word,  // identifier or opcode with its modifiers: "_Z1kPf", "%r1", "%tid.x", "ld.param.u64"
    directive,    // ".reg", ".align": one dotted part
    integer,      // `bits` holds the value (a preceding '-' is a token of its own)
    f32,          // 0f3F800000: `bits` holds the 32 bits
    f64,          // 0d… or decimal: `bits` holds the 64 bits
    string,       // without its quotes
    punctuation,  // one character
    invalid,      // an unknown character or malformed number
  };
  Kind kind = Kind::end;
  std::string_view text;
  std::uint64_t bits = 0;
  std::uint32_t line = 0;

  bool is(char c) const { return kind == Kind::punctuation && text[0] == c; }
  bool is_directive(std::string_view name) const { return kind == Kind::directive && text == name; }
  bool is_word(std::string_view name) const { return kind == Kind::word && text == name; }
};

class Lexer {
 public:
  explicit Lexer(std::string_view text, std::uint32_t first_line = 1)
      : text_(text), line_(first_line) {}

  const Token& peek();
  Token next();
  /// Consumes the next token when it is this character.
  bool accept(char c);
  Result<void> expect(char c);
  /// Text behind a '{' that was just consumed, up to its '}' (which is consumed too).
  Result<std::string_view> skip_braces();
  void skip_line();
  /// Position of the next unread token's beginning.
  std::size_t position();
  std::string_view text_from(std::size_t begin);

 private:
  void skip_blanks();
  Token scan();
  Token scan_number();

  std::string_view text_;
  std::size_t at_ = 0;
  std::uint32_t line_;
  Token peeked_;
  std::size_t peeked_at_ = 0;
  bool has_peeked_ = false;
};

/// An invalid_input error that names the line and what stands there.
Error syntax_error(const Token& found, std::string_view expected);

}  // namespace remora::softgpu
