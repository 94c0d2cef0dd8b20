// SPDX-License-Identifier: Apache-2.0
#include "protocol/image/ptx_tokens.h"

#include <algorithm>

namespace remora::image {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_word(char c) { return is_letter(c) || is_digit(c) || c == '_' || c == '$' || c == '%'; }

}  // namespace

std::string_view PtxTokens::next() {
  skip_blanks();
  if (at_ >= text_.size()) return {};
  const std::size_t begin = at_;
  if (text_[at_] == '"') {
    skip_string();
  } else if (is_word(text_[at_]) || text_[at_] == '.') {
    ++at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
  } else {
    ++at_;
  }
  return text_.substr(begin, at_ - begin);
}

bool PtxTokens::skip_block() {
  for (std::size_t depth = 1; depth > 0;) {
    at_ = std::min(text_.find_first_of("{}/\"", at_), text_.size());
    if (at_ == text_.size()) return false;
    switch (text_[at_]) {
      case '/':
        skip_comment();
        break;
      case '"':
        skip_string();
        break;
      case '{':
        ++depth;
        ++at_;
        break;
      default:
        --depth;
        ++at_;
    }
  }
  return true;
}

std::size_t PtxTokens::line() const {
  return 1 + static_cast<std::size_t>(std::ranges::count(text_.substr(0, at_), '\n'));
}

void PtxTokens::skip_blanks() {
  while (at_ < text_.size()) {
    const std::size_t before = at_;
    if (is_blank(text_[at_]))
      ++at_;
    else if (text_.substr(at_).starts_with("//") || text_.substr(at_).starts_with("/*"))
      skip_comment();
    if (at_ == before) return;
  }
}

/// At a "/"; where it begins no comment, only that character is skipped.
void PtxTokens::skip_comment() {
  const std::string_view rest = text_.substr(at_);
  std::size_t end = at_ + 1;
  if (rest.starts_with("//")) {
    end = text_.find('\n', at_);
  } else if (rest.starts_with("/*")) {
    end = text_.find("*/", at_ + 2);
    if (end != std::string_view::npos) end += 2;
  }
  at_ = std::min(end, text_.size());
}

/// At the opening quote. A backslash takes the next character with it.
void PtxTokens::skip_string() {
  ++at_;
  while (at_ < text_.size() && text_[at_] != '"') at_ += text_[at_] == '\\' ? 2 : 1;
  at_ = std::min(at_ + 1, text_.size());
}

bool is_ptx_name(std::string_view token) {
  return !token.empty() && is_word(token[0]) && !is_digit(token[0]);
}

}  // namespace remora::image
