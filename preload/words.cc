// wordexp(3): libc's own runs command substitutions with a spawn nobody can interpose. So they are
// found and run here, and replaced by references to their output; the rest is the real wordexp's,
// which is always told WRDE_NOCMD: a command this file overlooked fails instead of running.
//
// What counts as a substitution, and where it ends, follows glibc 2.36's parser, oddities included.
#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <wordexp.h>

#include "preload/capture.h"
#include "preload/fields.h"
#include "preload/references.h"
#include "preload/self.h"
#include "preload/text.h"

namespace preload {
namespace {

/// Where a substitution stands: only in plain text is its output split into fields.
enum class Place { plain, inside };

/// The part of the string that is still to be read.
struct Input {
  const char* at;
  const char* end;

  char peek(size_t ahead = 0) const {
    return ahead < static_cast<size_t>(end - at) ? at[ahead] : '\0';
  }
};

bool is_one_of(char byte, const char* set) { return byte != '\0' && strchr(set, byte) != nullptr; }

bool is_name_byte(char byte) { return isalnum(static_cast<unsigned char>(byte)) || byte == '_'; }

/// The ')' of "$(command)", nullptr if there is none. `text` is behind the "$(". Quotes count,
/// backslashes do not.
const char* command_end(const char* text, const char* end) {
  char quote = '\0';
  int depth = 1;
  for (; text < end; ++text) {
    if (*text == '\'' || *text == '"') {
      if (quote == '\0' || quote == *text) quote = quote == '\0' ? *text : '\0';
    } else if (quote == '\0' && *text == '(') {
      ++depth;
    } else if (quote == '\0' && *text == ')' && --depth == 0) {
      return text;
    }
  }
  return nullptr;
}

/// "$((" begins arithmetic if its first unmatched ')' has another one behind it.
bool is_arithmetic(const Input& in) {
  if (in.peek(1) != '(' || in.peek(2) != '(') return false;
  const char* text = in.at + 3;
  int depth = 0;
  for (; text < in.end && !(depth == 0 && *text == ')'); ++text) {
    if (*text == '(') ++depth;
    if (*text == ')') --depth;
  }
  return text + 1 < in.end && text[1] == ')';
}

/// The '}' of "${NAME-word}"; `text` is the start of the word. nullptr if there is none.
const char* word_end(const char* text, const char* end) {
  char quote = '\0';
  int depth = 0;
  for (; text < end; ++text) {
    if (*text == '\'' || *text == '"') {
      if (quote == '\0' || quote == *text) quote = quote == '\0' ? *text : '\0';
    } else if (quote == '\0' && *text == '\\') {
      ++text;
    } else if (quote == '\0' && *text == '{') {
      ++depth;
    } else if (quote == '\0' && *text == '}' && depth-- == 0) {
      return text;
    }
  }
  return nullptr;
}

class Rewriter {
 public:
  Rewriter(const char* words, int flags)
      : in_{words, words + strlen(words)},
        errors_((flags & WRDE_SHOWERR) != 0 ? Errors::shown : Errors::hidden),
        undefined_is_error_((flags & WRDE_UNDEF) != 0) {}

  /// False if a command could not be started, or without memory.
  bool rewrite();
  bool publish() { return references_.publish(); }
  const char* text() const { return out_.c_str(); }

 private:
  void copy(size_t count);
  void plain();
  void tilde();
  void single_quoted();
  void double_quoted();
  void dollar(Place place);
  void arithmetic(size_t opening, char closing);
  void braces();
  void word(const char* end);
  void command(Place place);
  void backquoted(Place place);
  void replace(const Text& command, const char* behind, Place place);
  bool word_is_used(const char* name, const char* name_end, const char* action) const;

  Input in_;
  Errors errors_;
  bool undefined_is_error_;
  /// Within a word that has had a '*', '[' or '?', where glibc knows no backquotes.
  bool globbing_ = false;
  /// The real wordexp will fail at in_: nothing behind it is expanded.
  bool stopped_ = false;
  bool failed_ = false;
  Text out_;
  References references_;
};

bool Rewriter::rewrite() {
  plain();
  copy(static_cast<size_t>(in_.end - in_.at));
  return !failed_ && !out_.failed();
}

void Rewriter::copy(size_t count) {
  const auto left = static_cast<size_t>(in_.end - in_.at);
  count = count < left ? count : left;
  out_.add(in_.at, count);
  in_.at += count;
}

void Rewriter::plain() {
  while (in_.at < in_.end && !stopped_) {
    const char byte = in_.peek();
    if (is_one_of(byte, field_separators())) globbing_ = false;
    if (is_one_of(byte, "*[?")) globbing_ = true;
    if (byte == '\\') {
      copy(2);
    } else if (byte == '\'') {
      single_quoted();
    } else if (byte == '"') {
      double_quoted();
    } else if (byte == '~' && !globbing_) {
      tilde();
    } else if (byte == '$') {
      dollar(globbing_ ? Place::inside : Place::plain);
    } else if (byte == '`' && !globbing_) {
      backquoted(Place::plain);
    } else if (is_one_of(byte, "\n|&;<>(){}") && !globbing_) {
      stopped_ = true;  // WRDE_BADCHAR
    } else {
      copy(1);
    }
  }
}

/// "~name": glibc takes everything up to the next separator as a user's name, unexpanded.
void Rewriter::tilde() {
  const size_t length = strcspn(in_.at, ":/ \t\\");
  const bool is_prefix = out_.size() == 0 || is_one_of(out_.last(), " \t=:");
  copy(is_prefix && in_.at[length] != '\\' ? length : 1);
}

void Rewriter::single_quoted() {
  copy(1);
  while (in_.at < in_.end && in_.peek() != '\'') copy(1);
  copy(1);
}

void Rewriter::double_quoted() {
  copy(1);
  while (in_.at < in_.end && in_.peek() != '"' && !stopped_) {
    if (in_.peek() == '\\') {
      copy(2);
    } else if (in_.peek() == '$') {
      dollar(Place::inside);
    } else if (in_.peek() == '`' && !globbing_) {
      backquoted(Place::inside);
    } else {
      copy(1);
    }
  }
  if (!stopped_) copy(1);
}

void Rewriter::dollar(Place place) {
  if (is_arithmetic(in_)) {
    arithmetic(3, ')');
  } else if (in_.peek(1) == '(') {
    command(place);
  } else if (in_.peek(1) == '[') {
    arithmetic(2, ']');
  } else if (in_.peek(1) == '{') {
    braces();
  } else {
    copy(is_one_of(in_.peek(1), "$#*@") ? 2 : 1);
  }
}

void Rewriter::arithmetic(size_t opening, char closing) {
  copy(opening);
  int depth = 1;
  while (in_.at < in_.end && !stopped_) {
    const char byte = in_.peek();
    if (byte == '(') ++depth;
    if (byte == ')') --depth;
    if (byte == '$') {
      dollar(Place::inside);
    } else if (byte == '`') {
      backquoted(Place::inside);
    } else if (byte == '\\') {
      copy(2);
    } else if (is_one_of(byte, "\n;{}")) {
      stopped_ = true;  // WRDE_BADCHAR
    } else if (byte == closing && depth == (closing == ')' ? 0 : 1)) {
      return copy(closing == ')' ? 2 : 1);
    } else {
      copy(1);
    }
  }
}

/// "${NAME}" or "${NAME-word}": a word is expanded only if the variable's state calls for it.
void Rewriter::braces() {
  const char* at = in_.at + 2;
  const auto skip = [&](auto matches) {
    while (at < in_.end && matches(*at)) ++at;
  };
  if (at < in_.end && *at == '#') ++at;
  const char* name = at;
  if (at < in_.end && is_one_of(*at, "*@$")) ++at;
  if (at == name) skip(is_name_byte);
  const char* name_end = at;
  const char* action = at < in_.end && *at == ':' ? at + 1 : at;
  skip([](char byte) { return is_one_of(byte, ":-=?+#%"); });

  const char* end = word_end(at, in_.end);
  const bool has_word = at > name_end;
  stopped_ = end == nullptr || name == name_end || (!has_word && end != at);  // WRDE_SYNTAX
  if (stopped_) return;
  copy(static_cast<size_t>(at - in_.at));
  if (has_word && word_is_used(name, name_end, action)) {
    word(end);
  } else {
    copy(static_cast<size_t>(end - in_.at));
  }
  if (!stopped_) copy(1);
}

/// The word of "${NAME-word}", up to `end`. glibc expands a '$' here even in single quotes, and a
/// backquote never.
void Rewriter::word(const char* end) {
  const char* const whole_end = in_.end;
  in_.end = end;
  while (in_.at < in_.end && !stopped_) {
    if (in_.peek() == '$') {
      dollar(Place::inside);
    } else {
      copy(in_.peek() == '\\' ? 2 : 1);
    }
  }
  in_.end = whole_end;
}

/// Positional and special parameters are not known here: their words are always expanded.
bool Rewriter::word_is_used(const char* name, const char* name_end, const char* action) const {
  if (!is_name_byte(*name) || isdigit(static_cast<unsigned char>(*name))) return true;
  Text variable;
  variable.add(name, static_cast<size_t>(name_end - name));
  const char* value = getenv(variable.c_str());
  if (value == nullptr && undefined_is_error_) return false;  // WRDE_BADVAL comes first
  const bool colon = action > name_end;
  const bool is_set = value != nullptr && (*value != '\0' || !colon);
  switch (*action) {
    case '+':
      return is_set;
    case '-':
    case '=':
    case '?':
      return !is_set;
    default:
      return true;
  }
}

void Rewriter::command(Place place) {
  const char* start = in_.at + 2;
  const char* end = command_end(start, in_.end);
  if (end == nullptr) {
    stopped_ = true;  // WRDE_SYNTAX
    return;
  }
  Text text;
  text.add(start, static_cast<size_t>(end - start));
  replace(text, end + 1, place);
}

/// A backslash takes its special meaning away from any character, within single quotes only from
/// those it would within double quotes.
void Rewriter::backquoted(Place place) {
  Text text;
  bool in_quotes = false;
  const char* at = in_.at + 1;
  for (; at < in_.end && *at != '`'; ++at) {
    if (*at == '\'') in_quotes = !in_quotes;
    if (*at == '\\' && at + 1 < in_.end) {
      ++at;
      if (*at == '\n') continue;
      if (in_quotes && !is_one_of(*at, "$`\"\\")) text.add('\\');
    }
    text.add(*at);
  }
  if (at >= in_.end) {
    stopped_ = true;  // WRDE_SYNTAX
    return;
  }
  replace(text, at + 1, place);
}

/// Runs `command` and puts its output in its place; reading goes on at `behind`. What /bin/sh
/// cannot parse stays, for the real wordexp to stumble over.
void Rewriter::replace(const Text& command, const char* behind, Place place) {
  Text output;
  Captured captured = Captured::output;
  if (command.size() > 0) captured = capture(command.c_str(), errors_, output);
  failed_ = failed_ || command.failed() || captured == Captured::not_started;
  stopped_ = failed_ || captured == Captured::not_shell;
  if (stopped_) return;

  in_.at = behind;
  if (place == Place::plain) {
    failed_ = !append_fields(output.c_str(), out_, references_);
  } else {
    while (output.last() == '\n') output.drop_last();
    // An empty variable in quotes is WRDE_NOSPACE in glibc; nothing in quotes is an empty word.
    failed_ = output.size() > 0 && !references_.add(output.c_str(), out_);
  }
}

/// As glibc: a thread cancelled between spawn and wait would leave a child behind.
class NoCancellation {
 public:
  NoCancellation() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state_); }
  NoCancellation(const NoCancellation&) = delete;
  NoCancellation& operator=(const NoCancellation&) = delete;
  ~NoCancellation() { pthread_setcancelstate(state_, nullptr); }

 private:
  int state_;
};

int expand(const char* words, wordexp_t* result, int flags) {
  const auto real_wordexp = real().wordexp;
  if (real_wordexp == nullptr) return WRDE_NOSPACE;
  const bool has_command = strstr(words, "$(") != nullptr || strchr(words, '`') != nullptr ||
                           strstr(words, "$[") != nullptr;
  if ((flags & WRDE_NOCMD) != 0 || !has_command) {
    return real_wordexp(words, result, flags | WRDE_NOCMD);
  }
  const NoCancellation guard;
  Rewriter rewriter(words, flags);
  if (!rewriter.rewrite() || !rewriter.publish()) return WRDE_NOSPACE;
  const int error = real_wordexp(rewriter.text(), result, flags | WRDE_NOCMD);
  return error == WRDE_CMDSUB ? WRDE_SYNTAX : error;
}

}  // namespace
}  // namespace preload

#pragma GCC visibility push(default)
extern "C" int wordexp(const char* words, wordexp_t* result, int flags) {
  return preload::expand(words, result, flags);
}
#pragma GCC visibility pop
