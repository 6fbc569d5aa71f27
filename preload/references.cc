#include "preload/references.h"

#include <stdio.h>

#include <atomic>

namespace preload {
namespace {

constexpr size_t kNameBytes = sizeof("AIRLOCK_WORD_4294967295");

/// Distinct names, so that two threads' expansions do not meet.
std::atomic<unsigned> names_used = 0;

}  // namespace

/// `entry` is "NAME=value" and belongs to the environment while published: putenv(3) keeps the
/// pointer, where setenv(3) would keep a copy of every output for ever.
struct References::Variable {
  Variable* next;
  char name[kNameBytes];
  char* entry;
};

References::~References() {
  while (first_ != nullptr) {
    Variable* variable = first_;
    first_ = variable->next;
    unsetenv(variable->name);
    free(variable->entry);
    free(variable);
  }
}

bool References::add(const char* value, Text& text) {
  auto* variable = static_cast<Variable*>(malloc(sizeof(Variable)));
  if (variable == nullptr) return false;
  snprintf(variable->name, kNameBytes, "AIRLOCK_WORD_%u", names_used++);
  const size_t name_length = strlen(variable->name);
  const size_t value_bytes = strlen(value) + 1;
  variable->entry = static_cast<char*>(malloc(name_length + 1 + value_bytes));
  variable->next = first_;
  first_ = variable;
  if (variable->entry == nullptr) return false;
  memcpy(variable->entry, variable->name, name_length);
  variable->entry[name_length] = '=';
  memcpy(variable->entry + name_length + 1, value, value_bytes);
  text.add("${");
  text.add(variable->name);
  text.add("}");
  return true;
}

bool References::publish() {
  for (Variable* variable = first_; variable != nullptr; variable = variable->next) {
    if (putenv(variable->entry) != 0) return false;
  }
  return true;
}

}  // namespace preload
