// What the standard streams are connected to.
#pragma once

namespace settrain {

/// Connects standard input, output and error to /dev/null where they are closed. Else a file that is opened later would
/// take their numbers, and what is printed would go into it.
void open_standard_streams();

/// Whether stderr is a terminal that follows control sequences (TERM is set and is not "dumb").
bool stderr_is_terminal();

/// Whether to colour what goes to stderr: a terminal, and NO_COLOR is unset or empty.
bool stderr_has_colour();

/// Width of the terminal at stderr in columns; 80 where it is unknown. Asked anew each time, since windows change.
int terminal_columns();

/// Width of the terminal at stdout in columns; 0 where there is none, or it is unknown.
int stdout_columns();

}  // namespace settrain
