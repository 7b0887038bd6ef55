// How the process' heap is kept.
#pragma once

namespace settrain {

/// From now on freed memory stays with the process, to be given out again. By default the C library hands large blocks
/// back to the system, and the kernel clears every page anew when the next training step asks for the same ones, which
/// can take a third of the step. Does nothing where the C library is not glibc.
void keep_freed_memory();

/// From now on threads share the heap's arenas: each keeps what was freed in it, and glibc makes up to eight a core.
/// For many threads that take large blocks in turn.
void share_arenas();

/// Hands freed memory back to the system, as far as the C library keeps some. Does nothing where it is not glibc.
void give_back_freed_memory();

}  // namespace settrain
