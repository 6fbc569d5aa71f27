#include "preload/fields.h"

namespace preload {
namespace {

constexpr char kBlanks[] = " \t\n";

class FieldSplitter {
 public:
  FieldSplitter(Text& text, References& references) : text_(text), references_(references) {}

  void feed(char byte) {
    if (strchr(separators_, byte) == nullptr) {
      if (state_ == State::newlines) end_field();
      state_ = State::field;
      newlines_ = byte == '\n' ? newlines_ + 1 : 0;
      field_.add(byte);
    } else if (strchr(kBlanks, byte) == nullptr) {
      const bool ends_blanks = state_ == State::blanks;
      state_ = State::start;
      if (!ends_blanks) end_field();
    } else if (byte == '\n') {
      if (state_ == State::field) state_ = State::newlines;
    } else if (state_ == State::field || state_ == State::newlines) {
      state_ = State::blanks;
      end_field();
    }
  }

  bool finish() {
    // Newlines that are no separators: the trailing ones go, as in any command substitution.
    for (; newlines_ > 0; --newlines_) field_.drop_last();
    add_field();
    return !failed_ && !field_.failed() && !text_.failed();
  }

 private:
  enum class State {
    start,     // before a field
    field,     // within one
    blanks,    // after one and a blank: one separator that is not blank still belongs to it
    newlines,  // after one and newlines, which only count if something follows
  };

  void add_field() {
    if (field_.size() == 0) return;
    text_.add('"');
    failed_ = !references_.add(field_.c_str(), text_) || failed_;
    text_.add('"');
    field_.clear();
  }

  void end_field() {
    const bool word_is_empty = text_.size() == 0 || strchr(" \t", text_.last()) != nullptr;
    if (field_.size() == 0 && word_is_empty) text_.add("''");
    add_field();
    text_.add(' ');
    newlines_ = 0;
  }

  Text& text_;
  References& references_;
  const char* separators_ = field_separators();
  Text field_;
  size_t newlines_ = 0;
  State state_ = State::start;
  bool failed_ = false;
};

}  // namespace

const char* field_separators() {
  const char* separators = getenv("IFS");
  return separators != nullptr ? separators : kBlanks;
}

bool append_fields(const char* output, Text& text, References& references) {
  FieldSplitter splitter(text, references);
  for (; *output != '\0'; ++output) splitter.feed(*output);
  return splitter.finish();
}

}  // namespace preload
