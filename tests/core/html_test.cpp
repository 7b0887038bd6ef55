#include "src/core/html.h"

#include "tests/support/catch2.h"

namespace settrain {

TEST_CASE("HTML's own characters are escaped") {
  CHECK(escape_html("a & <b> \"c\" 'd'") == "a &amp; &lt;b&gt; &quot;c&quot; &#39;d&#39;");
  CHECK(escape_html("") == "");
}

}  // namespace settrain
