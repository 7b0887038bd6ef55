// SIGINT and SIGTERM, as a request to stop.
#pragma once

namespace settrain {

/// From now on SIGINT (Ctrl-C) and SIGTERM only note the request, which the program answers at its next step by ending
/// cleanly. A SIGINT after that ends the process at once with exit code 130.
///
/// Ignores SIGXFSZ too: a file over the size limit is then an error of write(), as a full disk is.
void catch_interrupts();

/// The first signal caught (SIGINT or SIGTERM), or 0.
int interrupted();

}  // namespace settrain
