// Field splitting of a command's output as glibc's wordexp does it. The splitting it applies to
// variables differs ("x$(echo a )b" is two words, "x${A}b" one), so references alone do not do.
#pragma once

#include "preload/references.h"
#include "preload/text.h"

namespace preload {

/// Appends `output`, split at IFS, to `text`: each field a quoted reference, blanks between them.
/// Text before and after joins the first and last field. False without memory.
bool append_fields(const char* output, Text& text, References& references);

/// IFS, or what stands for it when it is unset.
const char* field_separators();

}  // namespace preload
